package main

import (
	"context"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const (
	waitLimit = 100 * time.Second
	waitPoll  = 50 * time.Millisecond
	waitQuiet = 1500 * time.Millisecond
)

type listener func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// received holds the messages that one consumer has received, in that order. The mutex guards the list.
type received struct {
	mutex    sync.Mutex
	messages []*primitive.MessageExt
}

func (r *received) add(messages []*primitive.MessageExt) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.messages = append(r.messages, messages...)
}

func (r *received) all() []*primitive.MessageExt {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]*primitive.MessageExt(nil), r.messages...)
}

func (r *received) size() int { return len(r.all()) }

// await waits until count messages are here, then for further ones that should not come.
func (r *received) await(count int) []*primitive.MessageExt {
	waitUntil(func() bool { return r.size() >= count })
	time.Sleep(waitQuiet)
	return r.all()
}

func (r *received) listener() listener {
	return func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		r.add(messages)
		return consumer.ConsumeSuccess, nil
	}
}

// waitUntil polls the condition, and returns false if it is not true within the limit.
func waitUntil(condition func() bool) bool {
	for deadline := time.Now().Add(waitLimit); !condition(); time.Sleep(waitPoll) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
