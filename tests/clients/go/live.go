package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	liveTimeout = 3 * time.Second
	livePause   = 10 * time.Millisecond
)

// liveSend sends one message after the other, and tells of each whether it was acknowledged.
func liveSend(c *clients) seen {
	sender := c.newProducer(producer.WithSendMsgTimeout(liveTimeout))
	ended := inputEnds()
	failed := 0
	fmt.Println("started")
	for number := 0; ; number++ {
		select {
		case <-ended:
			return seen{"failed": failed}
		case <-time.After(livePause):
		}
		body := fmt.Sprintf("m-%06d", number)
		result, err := sender.SendSync(background, primitive.NewMessage(c.topic, []byte(body)))
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, body, err)
		} else {
			fmt.Println(statuses[result.Status], body)
		}
	}
}

func liveReceive(c *clients) seen { return liveReceiveFrom(c, consumer.ConsumeFromFirstOffset) }

func liveReceiveNew(c *clients) seen { return liveReceiveFrom(c, consumer.ConsumeFromLastOffset) }

func liveReceiveFrom(c *clients, where consumer.ConsumeFromWhere) seen {
	member := c.pushConsumer(consumer.WithConsumeFromWhere(where))
	must(member.Subscribe(c.topic, consumer.MessageSelector{},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, each := range messages {
				fmt.Printf("received %d %s\n", each.Queue.QueueId, each.Body)
			}
			return consumer.ConsumeSuccess, nil
		}))
	must(member.Start())
	fmt.Println("started")
	<-inputEnds()
	return seen{}
}

// inputEnds returns a channel that is closed with the end of the standard input.
func inputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ended
}
