/*-------------------------------------------------------------------------
 *
 * shard.c
 *	  The sorted rows of one child of the merge, one after the other.
 *
 * A wrapper fetches rows in batches (postgres_fdw: fetch_size), and keeps one
 * batch a scan.  From the second batch on, the rows are copied into a buffer
 * of the shard, so that the server prepares the next batch while the merge
 * takes rows from the buffer:
 *
 *	  ask    wait         copy, ask again     take take take    wait ...
 *	  ---> | pending | -> | batch 2 ready | -> | batch 3 pending  | ->
 *
 * The first batch is not copied: a LIMIT may need no more.  All buffers
 * together have work_mem.  If a batch is larger than a buffer, the rest stays
 * with the wrapper, and the next batch is asked for when the rest is copied.
 *
 * Scans of one server share a connection, on which one batch at a time is
 * under way.  A shard with rows does not ask for the next batch, so the
 * connection is free for the other shards; those that the merge lacks go
 * first.
 *
 * The asynchronous interface of wrappers is made for Append: the requestor of
 * a row must be an AppendState.  Ours is never run.  The server's executor
 * and postgres_fdw use these fields of it:
 *
 *	  as_eventset		sockets to wait for, while we collect them
 *	  as_needrequest,
 *	  as_asyncresults	rows that have come: also in the requests, where we
 *						look for them
 *
 * Another node that needs the connection may receive our batch, and end our
 * request (process_pending_request() of postgres_fdw).  So the state of a
 * request is always read from the request.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/execAsync.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "base/clock.h"
#include "base/compat.h"
#include "shards/shard.h"

/* Bytes that a buffer begins with. */
#define BUFFER_MIN_BYTES	((Size) 64 * 1024)

/* Number of events that one wait returns; the next wait returns the others. */
#define MAX_EVENTS	16

FmsShards *
fms_shards_create(PlanState *parent, PlanState **scans, int count)
{
	FmsShards  *all = palloc0(sizeof(FmsShards));
	int			asynchronous = 0;
	int			i;

	all->count = count;
	all->shards = palloc0(count * sizeof(FmsShard));
	all->requestor = makeNode(AppendState);
	all->requestor->ps.plan = parent->plan;
	all->requestor->ps.state = parent->state;
	all->requestor->as_nasyncplans = all->count;
	all->everyone = bms_add_range(NULL, 0, count - 1);
	all->requestor->as_asyncresults =
		palloc0(count * sizeof(TupleTableSlot *));
	for (i = 0; i < all->count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		shard->scan = scans[i];
		/* in EvalPlanQual, no scan is */
		if (!shard->scan->async_capable)
			continue;
		asynchronous++;
		shard->slot = ExecInitExtraTupleSlot(parent->state,
											 ExecGetResultType(shard->scan),
											 &TTSOpsMinimalTuple);
		shard->request = palloc0(sizeof(AsyncRequest));
		shard->request->requestor = &all->requestor->ps;
		shard->request->requestee = shard->scan;
		shard->request->request_index = i;
	}
	all->share_bytes = (Size) work_mem * 1024 / Max(asynchronous, 1);
	return all;
}

/* ---- requests ---- */

static bool
is_pending(const FmsShard *shard)
{
	return shard->request && shard->request->callback_pending;
}

/* Does the merge lack a row of this shard, which has been asked for? */
static bool
is_lacking(const FmsShard *shard)
{
	return shard->head == NULL && is_pending(shard);
}

/*
 * Forgets what the server has noted for an Append.  The set must be empty when
 * we wait: a wrapper puts off requests while an Append has rows to return.
 */
static void
clear_notes(FmsShards *all)
{
	AppendState *requestor = all->requestor;

	bms_free(requestor->as_needrequest);
	requestor->as_needrequest = NULL;
	requestor->as_nasyncresults = 0;
	requestor->as_nasyncremain = all->count;
}

void
fms_shard_ask(FmsShards *all, FmsShard *shard)
{
	if (shard->request == NULL || shard->asked)
		return;
	shard->asked = true;
	/* the server adds each row's shard to this set, which has it already */
	all->requestor->as_needrequest = all->everyone;
	ExecAsyncRequest(shard->request);
	all->everyone = all->requestor->as_needrequest;
	all->requestor->as_needrequest = NULL;
	clear_notes(all);
	if (is_pending(shard))
		shard->batches = Min(shard->batches + 1, 2);
}

/* Lets the pending shards add their sockets: lacking ones, or the others. */
static void
add_sockets(FmsShards *all, bool lacking)
{
	int			i;

	for (i = 0; i < all->count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		if (!is_pending(shard) || is_lacking(shard) != lacking)
			continue;
		ExecAsyncConfigureWait(shard->request);
		clear_notes(all);
	}
}

/*
 * Waits for one event or more.  Returns their number, which may be 0: adding
 * its socket may complete a request instead.
 */
static int
wait_for_events(FmsShards *all, WaitEvent *events)
{
	WaitEventSet *set = fms_create_wait_event_set(all->count + 2);
	volatile int count = 0;

	all->requestor->as_eventset = set;
	PG_TRY();
	{
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
						  NULL);
		add_sockets(all, true);
		add_sockets(all, false);
		/* postgres_fdw counts the events, so the latch comes last */
		if (GetNumRegisteredWaitEvents(set) > 1)
		{
			AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch,
							  NULL);
			count = WaitEventSetWait(set, -1, events, MAX_EVENTS,
									 WAIT_EVENT_APPEND_READY);
		}
	}
	PG_FINALLY();
	{
		all->requestor->as_eventset = NULL;
		FreeWaitEventSet(set);
	}
	PG_END_TRY();
	return count;
}

/* Waits until a request gets on.  There is one under way. */
static void
wait_for_shards(FmsShards *all)
{
	WaitEvent	events[MAX_EVENTS];
	instr_time	start = fms_clock_now();
	double		elapsed_us;
	int			count = wait_for_events(all, events);
	int			i;

	elapsed_us = fms_clock_since_us(start);
	for (i = 0; i < all->count && count > 0; i++)
	{
		if (!is_lacking(&all->shards[i]))
			continue;
		all->shards[i].waits++;
		all->shards[i].wait_us += elapsed_us;
	}
	for (i = 0; i < count; i++)
	{
		AsyncRequest *request = events[i].user_data;

		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		/* receiving another batch may have ended this request */
		if ((events[i].events & WL_SOCKET_READABLE) &&
			request->callback_pending)
		{
			request->callback_pending = false;
			ExecAsyncNotify(request);
			clear_notes(all);
		}
	}
	CHECK_FOR_INTERRUPTS();
}

void
fms_shards_settle(FmsShards *all)
{
	int			i;

	for (i = 0; i < all->count; i++)
	{
		while (is_pending(&all->shards[i]))
			wait_for_shards(all);
	}
}

void
fms_shards_reset(FmsShards *all)
{
	int			i;

	fms_shards_settle(all);
	for (i = 0; i < all->count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		shard->head = NULL;
		shard->asked = false;
		shard->batches = 0;
		shard->used_bytes = 0;
		shard->next_byte = 0;
	}
}

/* ---- rows ---- */

/* Makes room for more bytes; false if the buffer would be too large. */
static bool
make_room(const FmsShards *all, FmsShard *shard, Size bytes)
{
	Size		needed_bytes = shard->used_bytes + bytes;
	Size		wanted_bytes = Max(2 * shard->buffer_bytes, BUFFER_MIN_BYTES);

	if (needed_bytes <= shard->buffer_bytes)
		return true;
	if (needed_bytes > all->share_bytes)
		return false;
	wanted_bytes = Min(Max(wanted_bytes, needed_bytes), all->share_bytes);
	if (shard->buffer == NULL)
		shard->buffer =
			MemoryContextAllocHuge(shard->scan->state->es_query_cxt,
								   wanted_bytes);
	else
		shard->buffer = repalloc_huge(shard->buffer, wanted_bytes);
	shard->buffer_bytes = wanted_bytes;
	return true;
}

/* Appends a copy of a tuple to the buffer; false if there is no room. */
static bool
copy_tuple(const FmsShards *all, FmsShard *shard, const void *tuple,
		   uint32 bytes)
{
	MinimalTuple copy;

	if (!make_room(all, shard, MAXALIGN(bytes)))
		return false;
	copy = (MinimalTuple) (shard->buffer + shard->used_bytes);
	memcpy(copy, tuple, bytes);
	copy->t_len = bytes;
	shard->used_bytes += MAXALIGN(bytes);
	return true;
}

/* The same for a row. */
static bool
copy_row(const FmsShards *all, FmsShard *shard, TupleTableSlot *row)
{
	MinimalTuple tuple;
	bool		made;
	bool		fits;

	/* but for its length, a heap tuple's end is a minimal tuple */
	if (TTS_IS_HEAPTUPLE(row))
	{
		HeapTuple	heap = ExecFetchSlotHeapTuple(row, false, NULL);

		return copy_tuple(all, shard,
						  (char *) heap->t_data + MINIMAL_TUPLE_OFFSET,
						  heap->t_len - MINIMAL_TUPLE_OFFSET);
	}
	tuple = ExecFetchSlotMinimalTuple(row, &made);
	fits = copy_tuple(all, shard, tuple, tuple->t_len);
	if (made)
		pfree(tuple);
	return fits;
}

/* Has the request brought a row, which has not been taken? */
static bool
has_row(const FmsShard *shard)
{
	return shard->asked && !is_pending(shard) &&
		!TupIsNull(shard->request->result);
}

/* Waits for rows, and copies them if more may follow them. */
static void
receive(FmsShards *all, FmsShard *shard)
{
	shard->used_bytes = 0;
	shard->next_byte = 0;
	fms_shard_ask(all, shard);
	while (is_pending(shard))
		wait_for_shards(all);
	if (shard->batches < 2)
		return;
	while (has_row(shard) && copy_row(all, shard, shard->request->result))
	{
		shard->asked = false;
		fms_shard_ask(all, shard);
	}
}

void
fms_shard_next(FmsShards *all, FmsShard *shard)
{
	TupleTableSlot *row;

	shard->head = NULL;
	if (shard->request == NULL)
	{
		row = ExecProcNode(shard->scan);
		if (!TupIsNull(row))
			shard->head = row;
		return;
	}
	if (shard->next_byte == shard->used_bytes)
		receive(all, shard);
	if (shard->next_byte < shard->used_bytes)
	{
		MinimalTuple tuple =
			(MinimalTuple) (shard->buffer + shard->next_byte);

		shard->next_byte += MAXALIGN(tuple->t_len);
		shard->head = ExecStoreMinimalTuple(tuple, shard->slot, false);
	}
	else if (has_row(shard))
	{
		shard->head = shard->request->result;
		shard->asked = false;
	}
}
