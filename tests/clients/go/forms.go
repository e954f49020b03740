package main

import (
	"bytes"
	"math/rand"
	"strings"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	compressedBytes = 64 << 10
	tooLargeBytes   = 5 << 20
)

func sendCompressed(c *clients) seen {
	body := make([]byte, compressedBytes)
	for index := range body {
		body[index] = byte(index / 100)
	}
	result := value(c.producer().SendSync(background, primitive.NewMessage(c.topic, body)))
	read := c.readBack(c.topic, 1)[0]
	return seen{
		"status":         statuses[result.Status],
		"equal":          bytes.Equal(body, read.Body),
		"stored_smaller": read.StoreSize < compressedBytes,
	}
}

func sendProperties(c *clients) seen {
	message := primitive.NewMessage(c.topic, []byte{0, 1, 2, 255, 254})
	message.WithTag("TagA").WithKeys([]string{"key-1", "key-2"})
	message.WithProperty("colour", "red")
	message.WithProperty("Größe", "Straße 漢字")
	message.Flag = 7
	result := value(c.producer().SendSync(background, message))
	read := c.readBack(c.topic, 1)[0]
	signed := []int8{}
	for _, each := range read.Body {
		signed = append(signed, int8(each))
	}
	return seen{
		"status":             statuses[result.Status],
		"body":               signed,
		"tags":               read.GetTags(),
		"keys":               strings.TrimSpace(read.GetKeys()),
		"colour":             read.GetProperty("colour"),
		"size":               read.GetProperty("Größe"),
		"flag":               read.Flag,
		"reconsume_times":    read.ReconsumeTimes,
		"message_id_kept":    read.MsgId == result.MsgID,
		"born_host":          strings.Split(read.BornHost, ":")[0],
		"born_before_stored": read.BornTimestamp <= read.StoreTimestamp,
	}
}

func sendTooLarge(c *clients) seen {
	body := make([]byte, tooLargeBytes)
	rand.New(rand.NewSource(1)).Read(body)
	_, err := c.producer().SendSync(background, primitive.NewMessage(c.topic, body))
	return withNextSend(c, err)
}

func sendQueueOutOfRange(c *clients) seen {
	message := c.message(0)
	message.Queue = &primitive.MessageQueue{Topic: c.topic, BrokerName: c.publishQueues()[0].BrokerName, QueueId: 99}
	_, err := c.queueProducer().SendSync(background, message)
	return withNextSend(c, err)
}

func sendUnknownTopic(c *clients) seen {
	_, err := c.producer().SendSync(background, primitive.NewMessage(c.topic+"_unknown", []byte{1}))
	return withNextSend(c, err)
}

// withNextSend returns the error, and the status of a further send.
func withNextSend(c *clients, err error) seen {
	answer := errorOf(err)
	answer["next_send"] = statuses[c.send(0, 1)[0].Status]
	return answer
}

// local counts the local transactions that the client runs.
type local struct{ executed int }

func (l *local) ExecuteLocalTransaction(*primitive.Message) primitive.LocalTransactionState {
	l.executed++
	return primitive.CommitMessageState
}

func (l *local) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.CommitMessageState
}

func sendInTransaction(c *clients) seen {
	transactions := &local{}
	name := c.instance()
	made := value(rocketmq.NewTransactionProducer(transactions,
		producer.WithNameServer(c.names()), producer.WithGroupName(name), producer.WithInstanceName(name)))
	must(made.Start())
	c.shutdowns = append(c.shutdowns, made.Shutdown)
	_, err := made.SendMessageInTransaction(background, c.message(0))
	answer := errorOf(err)
	answer["local_transactions"] = transactions.executed
	return answer
}
