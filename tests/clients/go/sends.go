package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	count  = 12
	level1 = time.Second
)

func sendSync(c *clients) seen {
	answer := resultsOf(c.send(0, count))
	answer["read"] = sortedBodies(c.readBack(c.topic, count))
	return answer
}

func sendAsync(c *clients) seen {
	var mutex sync.Mutex // guards results and errors
	var results []*primitive.SendResult
	errors := 0
	var answers sync.WaitGroup
	for number := 0; number < count; number++ {
		answers.Add(1)
		must(c.producer().SendAsync(background, func(_ context.Context, result *primitive.SendResult, err error) {
			defer answers.Done()
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				errors++
			} else {
				results = append(results, result)
			}
		}, c.message(number)))
	}
	answers.Wait()
	answer := resultsOf(results)
	answer["answered"], answer["errors"] = true, errors
	answer["read"] = sortedBodies(c.readBack(c.topic, count))
	return answer
}

func sendOneway(c *clients) seen {
	for number := 0; number < count; number++ {
		must(c.producer().SendOneWay(background, c.message(number)))
	}
	return seen{"read": sortedBodies(c.readBack(c.topic, count))}
}

func sendToQueue(c *clients) seen {
	var results []*primitive.SendResult
	for number := 0; number < count; number++ {
		results = append(results, c.sendTo(2, c.message(number)))
	}
	answer := resultsOf(results)
	answer["read_in_order"] = bodies(c.readBack(c.topic, count))
	return answer
}

func sendByKey(c *clients) seen {
	hashing := c.newProducer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	var results []*primitive.SendResult
	for number := 0; number < count; number++ {
		key := fmt.Sprintf("order-%d", number%3)
		results = append(results, value(hashing.SendSync(background, c.message(number).WithShardingKey(key).WithTag(key))))
	}
	queues, texts := map[string]map[int]bool{}, map[string][]string{}
	for _, each := range c.readBack(c.topic, count) {
		if queues[each.GetTags()] == nil {
			queues[each.GetTags()] = map[int]bool{}
		}
		queues[each.GetTags()][each.Queue.QueueId] = true
		texts[each.GetTags()] = append(texts[each.GetTags()], string(each.Body))
	}
	answer := resultsOf(results)
	delete(answer, "queues") // the hash function is the client's
	answer["bodies_by_key"] = texts
	answer["queues_by_key"] = []int{len(queues["order-0"]), len(queues["order-1"]), len(queues["order-2"])}
	return answer
}

func sendBatch(c *clients) seen {
	var messages []*primitive.Message
	for number := 0; number < count; number++ {
		message := c.message(number).WithTag("batch")
		message.WithProperty("number", fmt.Sprint(number))
		messages = append(messages, message)
	}
	result := value(c.producer().SendSync(background, messages...))
	read := c.readBack(c.topic, count)
	queues := map[int]bool{}
	numbers, tags := 0, 0
	for index, each := range read {
		queues[each.Queue.QueueId] = true
		if each.GetProperty("number") == fmt.Sprint(index) {
			numbers++
		}
		if each.GetTags() == "batch" {
			tags++
		}
	}
	return seen{
		"status":             statuses[result.Status],
		"first_offset":       result.QueueOffset,
		"message_ids":        len(strings.Split(result.MsgID, ",")),
		"offset_message_ids": len(strings.Split(result.OffsetMsgID, ",")),
		"queues_read":        len(queues),
		"read_in_order":      bodies(read),
		"numbers_read":       numbers,
		"tags_read":          tags,
	}
}

func sendDelayed(c *clients) seen {
	message := c.message(0).WithDelayTimeLevel(1)
	message.WithProperty("colour", "red")
	sent := time.Now()
	result := c.sendTo(1, message)
	read := c.readBack(c.topic, 1)[0]
	return seen{
		"status":          statuses[result.Status],
		"delayed":         time.Since(sent) >= level1,
		"topic_kept":      read.Topic == c.topic,
		"queue":           read.Queue.QueueId,
		"offset":          read.QueueOffset,
		"body":            string(read.Body),
		"colour":          read.GetProperty("colour"),
		"level":           levelOf(read),
		"message_id_kept": read.MsgId == result.MsgID,
	}
}

// levelOf returns 0 for a message without a delay level.
func levelOf(message *primitive.MessageExt) int {
	level := 0
	_, _ = fmt.Sscan(message.GetProperty(primitive.PropertyDelayTimeLevel), &level)
	return level
}
