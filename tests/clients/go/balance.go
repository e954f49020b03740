package main

import (
	"fmt"
	"reflect"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
)

const rounds = 5

// balance is a group of two members: they share the queues, and one takes over all of them when the other one stops.
type balance struct {
	c       *clients
	members []*received
	sent    int
}

func pushBalance(c *clients) seen {
	b := &balance{c: c}
	queues := len(c.publishQueues())
	b.join()
	alone := waitUntil(func() bool { return b.round()[0] == queues })
	second := b.join()
	shared := waitUntil(func() bool { return reflect.DeepEqual(b.round(), []int{queues / 2, queues / 2}) })
	stable := b.rounds()
	must(second.Shutdown())
	takenOver := waitUntil(func() bool { return b.round()[0] == queues })
	after := b.rounds()
	all := []string{}
	for _, member := range b.members {
		all = append(all, bodies(member.all())...)
	}
	return seen{
		"alone":               alone,
		"shared":              shared,
		"rounds_while_shared": stable,
		"taken_over":          takenOver,
		"rounds_after":        after,
		"lost":                b.sent - distinct(all),
	}
}

func (b *balance) join() rocketmq.PushConsumer {
	messages := &received{}
	b.members = append(b.members, messages)
	member := b.c.pushConsumer()
	must(member.Subscribe(b.c.topic, consumer.MessageSelector{}, messages.listener()))
	must(member.Start())
	return member
}

// round sends one message to each queue, waits for all of them, and returns how many each member received.
func (b *balance) round() []int {
	texts := map[string]bool{}
	sent := b.c.sendToEachQueue(b.sent)
	for number := b.sent; number < b.sent+sent; number++ {
		texts[fmt.Sprintf("m-%02d", number)] = true
	}
	b.sent += sent
	waitUntil(func() bool {
		sum := 0
		for _, each := range b.counts(texts) {
			sum += each
		}
		return sum >= sent
	})
	time.Sleep(200 * time.Millisecond) // for duplicates
	return b.counts(texts)
}

func (b *balance) rounds() [][]int {
	all := [][]int{}
	for number := 0; number < rounds; number++ {
		all = append(all, b.round())
	}
	return all
}

func (b *balance) counts(texts map[string]bool) []int {
	all := []int{}
	for _, member := range b.members {
		number := 0
		for _, body := range bodies(member.all()) {
			if texts[body] {
				number++
			}
		}
		all = append(all, number)
	}
	return all
}
