package history

import (
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// shrink returns a short part of operations that is still wrong, and the state with which it begins. None
// of its steps makes a right history wrong.
//
// It first finds the earliest end, since operations after a mistake do not matter. Then it finds the
// latest start, with a session about which nothing is known. Finally it leaves out as many reads as
// possible, since reads change nothing.
func shrink(operations []porcupine.Operation) (short []porcupine.Operation, begin state) {
	wrong := func(ops []porcupine.Operation, begin state) bool {
		return judge(ops, begin) == porcupine.Illegal
	}
	moments := moments(operations)
	end := sort.Search(len(moments), func(i int) bool { return wrong(until(operations, moments[i]), state{}) })
	if end == len(moments) {
		return operations, state{}
	}
	short = until(operations, moments[end])

	start := sort.Search(end, func(i int) bool { return !wrong(since(short, moments[i]), state{wild: true}) })
	if start > 0 {
		short, begin = since(short, moments[start-1]), state{wild: true}
	}
	for i := len(short) - 1; i >= 0; i-- {
		if short[i].Input.(Operation).What != Read {
			continue
		}
		if fewer := slices.Delete(slices.Clone(short), i, i+1); wrong(fewer, begin) {
			short = fewer
		}
	}
	return short, begin
}

// moments returns the times at which operations began or ended, in order.
func moments(operations []porcupine.Operation) (all []int64) {
	for _, op := range operations {
		all = append(all, op.Call)
		if op.Return != never {
			all = append(all, op.Return)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// until returns the part of operations that was known at a moment.
func until(operations []porcupine.Operation, moment int64) (part []porcupine.Operation) {
	for _, op := range operations {
		switch {
		case op.Call > moment:
			continue
		case op.Return > moment && op.Input.(Operation).What == Read:
			continue
		case op.Return > moment:
			op.Output, op.Return = Answer{}, never
		}
		part = append(part, op)
	}
	return part
}

// since leaves out operations that had ended by a moment.
func since(operations []porcupine.Operation, moment int64) (part []porcupine.Operation) {
	for _, op := range operations {
		if op.Return >= moment && !begins(op) {
			part = append(part, op)
		}
	}
	return part
}
