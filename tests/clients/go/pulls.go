package main

import (
	"sort"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	pulled    = 10
	pullQueue = 1
	polled    = 20
)

var pullStatuses = map[primitive.PullStatus]string{
	primitive.PullFound:         "FOUND",
	primitive.PullNoNewMsg:      "NO_NEW_MSG",
	primitive.PullNoMsgMatched:  "NO_MATCHED_MSG",
	primitive.PullOffsetIllegal: "OFFSET_ILLEGAL",
	primitive.PullBrokerTimeout: "BROKER_TIMEOUT",
}

func pull(c *clients) seen {
	reader, queues := filled(c)
	queue := queues[pullQueue]
	at := func(offset int64, numbers int) seen {
		return formOf(value(reader.PullFrom(background, queue, offset, numbers)))
	}
	ids := []int{}
	for _, each := range queues {
		ids = append(ids, each.QueueId)
	}
	answer := seen{"queues": ids, "all": at(0, most), "most_3": at(4, 3), "after_end": at(pulled+5, most)}
	held := make(chan seen, 1)
	go func() { held <- at(pulled, most) }()
	time.Sleep(time.Second) // the pull is held
	answer["held"] = len(held) == 0
	c.sendTo(pullQueue, c.message(pulled))
	answer["woken"] = <-held
	outside := &primitive.MessageQueue{Topic: c.topic, BrokerName: queue.BrokerName, QueueId: 99}
	_, err := reader.PullFrom(background, outside, 0, most)
	answer["queue_out_of_range"] = errorOf(err)
	unknown := &primitive.MessageQueue{Topic: c.topic + "_unknown", BrokerName: queue.BrokerName}
	_, err = reader.PullFrom(background, unknown, 0, most)
	answer["unknown_topic"] = errorOf(err)
	return answer
}

// pullOffsets stores an offset and reads it with another consumer of the group.
func pullOffsets(c *clients) seen {
	reader, queues := filled(c)
	queue := queues[pullQueue]
	answer := seen{"before": value(reader.CurrentOffset(queue))}
	must(reader.Assign(c.topic, queues))
	time.Sleep(time.Second) // PersistOffset is for the queues that the client has taken
	for _, step := range []struct {
		name   string
		offset int64
	}{{"stored", 4}, {"stored_back", 2}} {
		must(reader.UpdateOffset(queue, step.offset))
		must(reader.PersistOffset(background, c.topic))
		answer[step.name] = value(assigned(c, c.group, nil).CurrentOffset(queue)) == step.offset
	}
	answer["of_another_group"] = value(assigned(c, c.group+"_other", nil).CurrentOffset(queue))
	return answer
}

func pullSearchOffset(c *clients) seen {
	reader, queues := filled(c)
	queue := queues[pullQueue]
	search := func(queue *primitive.MessageQueue, time int64) int64 {
		return value(reader.OffsetForTimestamp(queue, time))
	}
	exact, between, first := []int64{}, []int64{}, int64(0)
	for _, each := range readQueue(reader, queue) {
		exact = append(exact, search(queue, each.StoreTimestamp))
		between = append(between, search(queue, each.StoreTimestamp+1))
		if first == 0 {
			first = each.StoreTimestamp
		}
	}
	return seen{
		"exact":       exact,
		"between":     between,
		"time_0":      search(queue, 0),
		"future":      search(queue, time.Now().Add(time.Minute).UnixMilli()),
		"empty_queue": search(queues[0], first),
	}
}

// filled fills one queue with messages of different store times, and returns a consumer without queues of its own.
func filled(c *clients) (rocketmq.PullConsumer, []*primitive.MessageQueue) {
	for number := 0; number < pulled; number++ {
		c.sendTo(pullQueue, c.message(number))
		time.Sleep(20 * time.Millisecond)
	}
	c.readBack(c.topic, pulled)
	reader := assigned(c, c.group, nil)
	return reader, subscribeQueues(reader, c.topic)
}

func assigned(c *clients, group string, queues []*primitive.MessageQueue) rocketmq.PullConsumer {
	reader := c.newPullConsumer(group)
	must(reader.Assign(c.topic, queues))
	must(reader.Start())
	return reader
}

func formOf(result *primitive.PullResult) seen {
	offsets := []int64{}
	for _, each := range result.GetMessageExts() {
		offsets = append(offsets, each.QueueOffset)
	}
	return seen{
		"status":  pullStatuses[result.Status],
		"offsets": offsets,
		"next":    result.NextBeginOffset,
		"min":     result.MinOffset,
		"max":     result.MaxOffset,
	}
}

// liteSubscribe consumes by Poll, and again after a stop.
func liteSubscribe(c *clients) seen {
	c.send(0, polled)
	answer := seen{"first": pollAndStop(c, polled)}
	c.send(polled, polled+newMessages)
	answer["second"] = pollAndStop(c, newMessages)
	return answer
}

func pollAndStop(c *clients, count int) []string {
	member := c.newPullConsumer(c.group)
	must(member.Subscribe(c.topic, consumer.MessageSelector{}))
	must(member.Start())
	all := sortedBodies(poll(member, count))
	must(member.PersistOffset(background, c.topic))
	must(member.Shutdown())
	return all
}

// liteAssign starts at an offset of its own in each queue.
func liteAssign(c *clients) seen {
	c.send(0, polled)
	c.readBack(c.topic, polled)
	reader := assigned(c, c.group, nil)
	queues := subscribeQueues(reader, c.topic)
	for _, queue := range queues {
		reader.SeekOffset(queue, 3)
	}
	must(reader.Assign(c.topic, queues))
	offsets := []int64{}
	messages := poll(reader, 2*len(queues))
	sort.Slice(messages, func(a, b int) bool {
		if messages[a].Queue.QueueId != messages[b].Queue.QueueId {
			return messages[a].Queue.QueueId < messages[b].Queue.QueueId
		}
		return messages[a].QueueOffset < messages[b].QueueOffset
	})
	for _, each := range messages {
		offsets = append(offsets, each.QueueOffset)
	}
	return seen{"offsets_after_seek": offsets}
}

// poll polls until count messages are here, then for further ones that should not come.
func poll(member rocketmq.PullConsumer, count int) []*primitive.MessageExt {
	var all []*primitive.MessageExt
	once := func() {
		if request, err := member.Poll(background, 500*time.Millisecond); err == nil {
			all = append(all, request.GetMsgList()...)
			member.ACK(background, request, consumer.ConsumeSuccess)
		}
	}
	waitUntil(func() bool {
		once()
		return len(all) >= count
	})
	once()
	return all
}
