package main

import (
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
)

const (
	oldMessages = 12
	newMessages = 8
)

func startFromLast(c *clients) seen {
	member := c.pushConsumer(consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	return seen{"received": consumeNewAndOld(c, member)}
}

// startFromTimestamp starts at a time after the old messages; the setting has seconds.
func startFromTimestamp(c *clients) seen {
	after := time.Now().Add(time.Minute).Format("20060102150405")
	return seen{"received": consumeNewAndOld(c, c.pushConsumer(
		consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp), consumer.WithConsumeTimestamp(after)))}
}

func consumeNewAndOld(c *clients, member rocketmq.PushConsumer) int {
	c.send(0, oldMessages)
	c.readBack(c.topic, oldMessages)
	messages := &received{}
	must(member.Subscribe(c.topic, consumer.MessageSelector{}, messages.listener()))
	must(member.Start())
	time.Sleep(3 * time.Second) // the consumer has its queues
	c.send(oldMessages, oldMessages+newMessages)
	return len(messages.await(oldMessages + newMessages))
}

// startAgain stops a consumer and starts another one of its group.
func startAgain(c *clients) seen {
	c.send(0, oldMessages)
	first := consumeAndStop(c, oldMessages)
	c.send(oldMessages, oldMessages+newMessages)
	second := consumeAndStop(c, newMessages)
	return seen{"first": first, "second": second}
}

func consumeAndStop(c *clients, count int) []string {
	messages := &received{}
	member := c.pushConsumer()
	must(member.Subscribe(c.topic, consumer.MessageSelector{}, messages.listener()))
	must(member.Start())
	all := messages.await(count)
	must(member.Shutdown())
	return sortedBodies(all)
}
