// Command scenarios runs one scenario with RocketMQ's Go client and prints its observations as one JSON object.
// Arguments: scenario, topic, consumer group. NAMESRV_ADDR: the name server. An error of the client is an observation:
// the exit status is 0. The scenarios live_... print a line for each event, until their standard input ends.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// seen holds observations that do not differ between systems: no times, no ids, no addresses.
type seen map[string]any

var scenarios = map[string]func(*clients) seen{
	"send_sync":               sendSync,
	"send_async":              sendAsync,
	"send_oneway":             sendOneway,
	"send_to_queue":           sendToQueue,
	"send_by_key":             sendByKey,
	"send_batch":              sendBatch,
	"send_delayed":            sendDelayed,
	"send_compressed":         sendCompressed,
	"send_properties":         sendProperties,
	"send_too_large":          sendTooLarge,
	"send_queue_out_of_range": sendQueueOutOfRange,
	"send_unknown_topic":      sendUnknownTopic,
	"send_in_transaction":     sendInTransaction,
	"push_concurrent":         pushConcurrent,
	"push_orderly":            pushOrderly,
	"push_broadcast":          pushBroadcast,
	"push_tags":               pushTags,
	"push_sql92":              pushSQL92,
	"push_balance":            pushBalance,
	"start_from_last":         startFromLast,
	"start_from_timestamp":    startFromTimestamp,
	"start_again":             startAgain,
	"retry_once":              retryOnce,
	"retry_to_dead_letters":   retryToDeadLetters,
	"orderly_suspend":         orderlySuspend,
	"orderly_to_dead_letters": orderlyToDeadLetters,
	"lite_subscribe":          liteSubscribe,
	"lite_assign":             liteAssign,
	"pull":                    pull,
	"pull_offsets":            pullOffsets,
	"pull_search_offset":      pullSearchOffset,
	"live_send":               liveSend,
	"live_receive":            liveReceive,
	"live_receive_new":        liveReceiveNew,
}

func main() {
	c := &clients{topic: os.Args[2], group: os.Args[3], nameServer: os.Getenv("NAMESRV_ADDR")}
	answer, err := json.Marshal(scenarios[os.Args[1]](c))
	must(err)
	c.close()
	fmt.Println(string(answer))
}

// must ends the program for an error that the scenario is not about.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func value[T any](result T, err error) T {
	must(err)
	return result
}
