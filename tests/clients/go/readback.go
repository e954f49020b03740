package main

import (
	"sort"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const most = 32

// readBack returns all messages of a topic, in the order of queue and offset, after there are at least count of them.
// It needs no state of a group.
func (c *clients) readBack(topic string, count int) []*primitive.MessageExt {
	var reader rocketmq.PullConsumer
	waitUntil(func() bool {
		reader = c.newPullConsumer(c.group + "_reader")
		must(reader.Assign(topic, nil))
		return reader.Start() == nil // an error: no route yet
	})
	var all []*primitive.MessageExt
	waitUntil(func() bool {
		all = nil
		for _, queue := range subscribeQueues(reader, topic) {
			all = append(all, readQueue(reader, queue)...)
		}
		return len(all) >= count
	})
	return all
}

// subscribeQueues returns the queues of the topic with the name of the broker that gives messages.
func subscribeQueues(reader rocketmq.PullConsumer, topic string) []*primitive.MessageQueue {
	queues := value(reader.GetTopicRouteInfo(topic))
	sort.Slice(queues, func(a, b int) bool { return queues[a].QueueId < queues[b].QueueId })
	return queues
}

// readQueue pulls to the end and no further, because such a pull is held.
func readQueue(reader rocketmq.PullConsumer, queue *primitive.MessageQueue) []*primitive.MessageExt {
	var all []*primitive.MessageExt
	end := value(reader.OffsetForTimestamp(queue, time.Now().Add(time.Hour).UnixMilli()))
	for offset := int64(0); offset < end; {
		result := value(reader.PullFrom(background, queue, offset, most))
		all = append(all, result.GetMessageExts()...)
		offset = result.NextBeginOffset
	}
	return all
}
