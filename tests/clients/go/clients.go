package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const sendTimeout = 20 * time.Second

var background = context.Background()

// clients makes clients of one topic and one group, each with a connection of its own, and shuts them down at the end.
// CLIENTS_TOKEN: the security token that they send; CLIENTS_TLS: not empty for TLS.
type clients struct {
	topic, group, nameServer string
	made                     int
	shutdowns                []func() error
	inTurn, toQueue          rocketmq.Producer
	queues                   []*primitive.MessageQueue
}

func (c *clients) close() {
	for index := len(c.shutdowns) - 1; index >= 0; index-- {
		_ = c.shutdowns[index]()
	}
}

// instance returns a name for the next client; clients of equal names would share one connection and one client id.
func (c *clients) instance() string {
	c.made++
	return fmt.Sprintf("%s-%d-%d", c.group, os.Getpid(), c.made)
}

func (c *clients) names() primitive.NamesrvAddr { return primitive.NamesrvAddr{c.nameServer} }

func useTLS() bool { return os.Getenv("CLIENTS_TLS") != "" }

// credentials returns the security token, or nothing.
func credentials() primitive.Credentials {
	token := os.Getenv("CLIENTS_TOKEN")
	if token == "" {
		return primitive.Credentials{}
	}
	return primitive.Credentials{AccessKey: "tidemark", SecretKey: "unused", SecurityToken: token}
}

func (c *clients) newProducer(options ...producer.Option) rocketmq.Producer {
	name := c.instance()
	made := value(rocketmq.NewProducer(append([]producer.Option{
		producer.WithNameServer(c.names()),
		producer.WithGroupName(name + "_producer"),
		producer.WithInstanceName(name),
		producer.WithSendMsgTimeout(sendTimeout),
		producer.WithTls(useTLS()),
		producer.WithCredentials(credentials()),
	}, options...)...))
	must(made.Start())
	c.shutdowns = append(c.shutdowns, made.Shutdown)
	return made
}

// producer sends to the queues in turn.
func (c *clients) producer() rocketmq.Producer {
	if c.inTurn == nil {
		c.inTurn = c.newProducer()
	}
	return c.inTurn
}

// queueProducer sends each message to its own field Queue.
func (c *clients) queueProducer() rocketmq.Producer {
	if c.toQueue == nil {
		c.toQueue = c.newProducer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	}
	return c.toQueue
}

func (c *clients) message(number int) *primitive.Message {
	return primitive.NewMessage(c.topic, []byte(fmt.Sprintf("m-%02d", number)))
}

// send sends the messages first to last - 1, one after the other.
func (c *clients) send(first, last int) []*primitive.SendResult {
	var results []*primitive.SendResult
	for number := first; number < last; number++ {
		results = append(results, value(c.producer().SendSync(background, c.message(number))))
	}
	return results
}

// sendTo sends one message to a queue of the topic.
func (c *clients) sendTo(queueID int, message *primitive.Message) *primitive.SendResult {
	queues := c.publishQueues()
	message.Queue = &primitive.MessageQueue{Topic: c.topic, BrokerName: queues[0].BrokerName, QueueId: queueID}
	return value(c.queueProducer().SendSync(background, message))
}

// sendToEachQueue sends one message to each queue. Their numbers begin at first.
func (c *clients) sendToEachQueue(first int) int {
	for index := range c.publishQueues() {
		c.sendTo(index, c.message(first+index))
	}
	return len(c.publishQueues())
}

// recordingSelector keeps the queues that the client offers for a send.
type recordingSelector struct{ queues []*primitive.MessageQueue }

func (s *recordingSelector) Select(
	_ *primitive.Message, queues []*primitive.MessageQueue, _ string,
) *primitive.MessageQueue {
	s.queues = queues
	return nil // then nothing is sent
}

// publishQueues returns the topic's queues with the name of the broker that takes messages.
func (c *clients) publishQueues() []*primitive.MessageQueue {
	if c.queues == nil {
		selector := &recordingSelector{}
		asking := c.newProducer(producer.WithQueueSelector(selector), producer.WithRetry(0))
		_, _ = asking.SendSync(background, c.message(0))
		c.queues = selector.queues
		sort.Slice(c.queues, func(a, b int) bool { return c.queues[a].QueueId < c.queues[b].QueueId })
	}
	return c.queues
}

// pushConsumer returns a push consumer that is not started. It consumes one message a call, from the first one.
func (c *clients) pushConsumer(options ...consumer.Option) rocketmq.PushConsumer {
	made := value(rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNameServer(c.names()),
		consumer.WithGroupName(c.group),
		consumer.WithInstance(c.instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithTls(useTLS()),
		consumer.WithCredentials(credentials()),
	}, options...)...))
	c.shutdowns = append(c.shutdowns, made.Shutdown)
	return made
}

// newPullConsumer returns a pull consumer that is not started.
func (c *clients) newPullConsumer(group string) rocketmq.PullConsumer {
	made := value(rocketmq.NewPullConsumer(
		consumer.WithNameServer(c.names()),
		consumer.WithGroupName(group),
		consumer.WithInstance(c.instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithTls(useTLS()),
		consumer.WithCredentials(credentials()),
	))
	c.shutdowns = append(c.shutdowns, made.Shutdown)
	return made
}
