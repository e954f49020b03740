package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strconv"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

var (
	statuses = map[primitive.SendStatus]string{
		primitive.SendOK:                "SEND_OK",
		primitive.SendFlushDiskTimeout:  "FLUSH_DISK_TIMEOUT",
		primitive.SendFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT",
		primitive.SendSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
		primitive.SendUnknownError:      "UNKNOWN_ERROR",
	}
	codeOfText = regexp.MustCompile(`(?i)code: (\d+)`)
)

func bodies(messages []*primitive.MessageExt) []string {
	all := make([]string, len(messages))
	for index, each := range messages {
		all[index] = string(each.Body)
	}
	return all
}

func sortedBodies(messages []*primitive.MessageExt) []string {
	all := bodies(messages)
	sort.Strings(all)
	return all
}

func distinct(texts []string) int {
	set := map[string]bool{}
	for _, each := range texts {
		set[each] = true
	}
	return len(set)
}

// every returns true if the condition is true of all messages.
func every(messages []*primitive.MessageExt, condition func(*primitive.MessageExt) bool) bool {
	for _, each := range messages {
		if !condition(each) {
			return false
		}
	}
	return true
}

// resultsOf returns the facts of sends that succeeded.
func resultsOf(results []*primitive.SendResult) seen {
	offsets := map[int][]int64{}
	var statusTexts, ids, offsetIDs []string
	same := true
	for _, each := range results {
		offsets[each.MessageQueue.QueueId] = append(offsets[each.MessageQueue.QueueId], each.QueueOffset)
		statusTexts = append(statusTexts, statuses[each.Status])
		ids, offsetIDs = append(ids, each.MsgID), append(offsetIDs, each.OffsetMsgID)
		same = same && each.MsgID == each.TransactionID
	}
	queues, isDense := []int{}, true
	for queue, of := range offsets {
		queues = append(queues, queue)
		isDense = isDense && dense(of)
	}
	sort.Ints(queues)
	return seen{
		"sent":                         len(results),
		"statuses":                     sortedSet(statusTexts),
		"queues":                       queues,
		"offsets_dense":                isDense,
		"message_ids":                  distinct(ids),
		"offset_message_ids":           distinct(offsetIDs),
		"transaction_id_is_message_id": same,
	}
}

func sortedSet(texts []string) []string {
	set := []string{}
	sort.Strings(texts)
	for index, each := range texts {
		if index == 0 || texts[index-1] != each {
			set = append(set, each)
		}
	}
	return set
}

// dense returns true if the offsets are 0, 1, 2 and so on, in any order.
func dense(offsets []int64) bool {
	sort.Slice(offsets, func(a, b int) bool { return offsets[a] < offsets[b] })
	for index, each := range offsets {
		if each != int64(index) {
			return false
		}
	}
	return true
}

// errorOf returns the type of an error, and the response code that its text contains.
func errorOf(err error) seen {
	if err == nil {
		return seen{}
	}
	fmt.Fprintln(os.Stderr, err)
	answer := seen{"error_class": reflect.Indirect(reflect.ValueOf(err)).Type().Name()}
	if match := codeOfText.FindStringSubmatch(err.Error()); match != nil {
		answer["response_code"] = value(strconv.Atoi(match[1]))
	}
	return answer
}
