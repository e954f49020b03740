package main

import (
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	before  = 40
	whole   = 60
	nothing = 10 * time.Second
)

func pushConcurrent(c *clients) seen {
	all := consume(c)
	return seen{"received": len(all), "distinct": distinct(bodies(all))}
}

func pushOrderly(c *clients) seen {
	all := consume(c, consumer.WithConsumerOrder(true))
	last, inOrder := map[int]int64{}, true
	for _, each := range all {
		previous, known := last[each.Queue.QueueId]
		inOrder = inOrder && (!known || previous < each.QueueOffset)
		last[each.Queue.QueueId] = each.QueueOffset
	}
	return seen{"received": len(all), "distinct": distinct(bodies(all)), "in_order": inOrder}
}

// consume consumes messages that were sent before and after the start.
func consume(c *clients, options ...consumer.Option) []*primitive.MessageExt {
	messages := &received{}
	member := c.pushConsumer(options...)
	must(member.Subscribe(c.topic, consumer.MessageSelector{}, messages.listener()))
	c.send(0, before)
	must(member.Start())
	waitUntil(func() bool { return messages.size() >= before })
	c.send(before, whole)
	return messages.await(whole)
}

func pushBroadcast(c *clients) seen {
	var members []*received
	for member := 0; member < 2; member++ {
		messages := &received{}
		made := c.pushConsumer(consumer.WithConsumerModel(consumer.BroadCasting))
		must(made.Subscribe(c.topic, consumer.MessageSelector{}, messages.listener()))
		must(made.Start())
		members = append(members, messages)
	}
	c.send(0, whole)
	counts, distincts := []int{}, []int{}
	for _, each := range members {
		counts = append(counts, len(each.await(whole)))
		distincts = append(distincts, distinct(bodies(each.all())))
	}
	return seen{"received": counts, "distinct": distincts}
}

func pushTags(c *clients) seen {
	tags := []string{"A", "B", "C", ""}
	for number := 0; number < before; number++ {
		message := c.message(number)
		if tag := tags[number%len(tags)]; tag != "" {
			message.WithTag(tag)
		}
		c.sendTo(number/len(tags)%2, message)
	}
	messages := &received{}
	member := c.pushConsumer()
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: "A || B"}
	must(member.Subscribe(c.topic, selector, messages.listener()))
	must(member.Start())
	counts := map[string]int{}
	for _, each := range messages.await(before / 2) {
		counts[each.GetTags()]++
	}
	return seen{"received": counts}
}

func pushSQL92(c *clients) seen {
	messages := &received{}
	member := c.pushConsumer()
	selector := consumer.MessageSelector{Type: consumer.SQL92, Expression: "colour = 'red'"}
	must(member.Subscribe(c.topic, selector, messages.listener()))
	message := c.message(0)
	message.WithProperty("colour", "red")
	c.sendTo(0, message)
	answer := errorOf(member.Start())
	time.Sleep(nothing)
	answer["received"] = messages.size()
	return answer
}
