package main

import (
	"context"
	"fmt"
	"math"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	retried           = 3
	inOrderCount      = 5
	mostReconsumeTime = 2
)

func retryOnce(c *clients) seen {
	messages := &received{}
	startFailing(c, messages, 1)
	ids, offsetIDs := map[string]bool{}, map[string]bool{}
	for _, each := range c.send(0, retried) {
		ids[each.MsgID], offsetIDs[each.OffsetMsgID] = true, true
	}
	all := messages.await(2 * retried)
	var again []*primitive.MessageExt
	for _, each := range all {
		if each.ReconsumeTimes > 0 {
			again = append(again, each)
		}
	}
	return seen{
		"reconsume_times":  reconsumeTimes(all),
		"topic_kept":       every(all, func(each *primitive.MessageExt) bool { return each.Topic == c.topic }),
		"message_ids_kept": every(again, func(each *primitive.MessageExt) bool { return ids[each.MsgId] }),
		"origin_message_ids": every(again, func(each *primitive.MessageExt) bool {
			return offsetIDs[each.GetProperty(primitive.PropertyOriginMessageId)]
		}),
	}
}

func retryToDeadLetters(c *clients) seen {
	messages := &received{}
	startFailing(c, messages, math.MaxInt32)
	c.send(0, 1)
	answer := seen{"reconsume_times": reconsumeTimes(messages.await(1 + mostReconsumeTime))}
	addDeadLetters(c, answer)
	return answer
}

// startFailing consumes with failures: each goes back with the delay level 1. Attempts of a message whose reconsume
// times are below limit fail.
func startFailing(c *clients, messages *received, limit int32) rocketmq.PushConsumer {
	member := c.pushConsumer(consumer.WithMaxReconsumeTimes(mostReconsumeTime))
	must(member.Subscribe(c.topic, consumer.MessageSelector{},
		func(ctx context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			messages.add(all)
			attempt, _ := primitive.GetConcurrentlyCtx(ctx)
			attempt.DelayLevelWhenNextConsume = 1
			if all[0].ReconsumeTimes < limit {
				return consumer.ConsumeRetryLater, nil
			}
			return consumer.ConsumeSuccess, nil
		}))
	must(member.Start())
	return member
}

func orderlySuspend(c *clients) seen { return orderly(c, 2, inOrderCount+2) }

func orderlyToDeadLetters(c *clients) seen {
	answer := orderly(c, math.MaxInt32, inOrderCount+mostReconsumeTime)
	addDeadLetters(c, answer)
	return answer
}

// orderly consumes one queue in order; the first attempts of its first message suspend the queue.
func orderly(c *clients, failures int32, count int) seen {
	messages := &received{}
	var mutex sync.Mutex // guards deliveries
	deliveries := []string{}
	member := c.pushConsumer(consumer.WithConsumerOrder(true), consumer.WithMaxReconsumeTimes(mostReconsumeTime))
	must(member.Subscribe(c.topic, consumer.MessageSelector{},
		func(ctx context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			mutex.Lock()
			deliveries = append(deliveries, fmt.Sprintf("%s %d", all[0].Body, all[0].ReconsumeTimes))
			mutex.Unlock()
			messages.add(all)
			attempt, _ := primitive.GetOrderlyCtx(ctx)
			attempt.SuspendCurrentQueueTimeMillis = 100
			if string(all[0].Body) == "m-00" && all[0].ReconsumeTimes < failures {
				return consumer.SuspendCurrentQueueAMoment, nil
			}
			return consumer.ConsumeSuccess, nil
		}))
	for number := 0; number < inOrderCount; number++ {
		c.sendTo(0, c.message(number))
	}
	must(member.Start())
	messages.await(count)
	mutex.Lock()
	defer mutex.Unlock()
	return seen{"deliveries": append([]string{}, deliveries...)}
}

func reconsumeTimes(messages []*primitive.MessageExt) map[string][]int32 {
	times := map[string][]int32{}
	for _, each := range messages {
		times[string(each.Body)] = append(times[string(each.Body)], each.ReconsumeTimes)
	}
	return times
}

func addDeadLetters(c *clients, answer seen) {
	dead := c.readBack("%DLQ%"+c.group, 1)
	queues, times := []int{}, []int32{}
	for _, each := range dead {
		queues, times = append(queues, each.Queue.QueueId), append(times, each.ReconsumeTimes)
	}
	answer["dead"], answer["dead_queues"], answer["dead_reconsume_times"] = bodies(dead), queues, times
	answer["dead_retry_topic"] = every(dead, func(each *primitive.MessageExt) bool {
		return each.GetProperty(primitive.PropertyRetryTopic) == c.topic
	})
}
