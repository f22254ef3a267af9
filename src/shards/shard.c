/*-------------------------------------------------------------------------
 *
 * shard.c
 *	  The sorted rows of one child of the merge, one after the other.
 *
 * A wrapper fetches rows in batches (postgres_fdw: fetch_size), and keeps one
 * batch a scan.  From the second batch on, the rows are copied, so that the
 * server prepares the next batch while the merge takes rows.  The first batch
 * is not copied: a LIMIT may need no more.  All copies have work_mem, and one
 * row more a shard.  If a batch is larger than its share, the rest stays with
 * the wrapper, and the next batch is asked for later.
 *
 * Scans of one server share a connection, on which one batch at a time is
 * under way.  A shard that has rows does not ask again, so the connection is
 * free for the others.
 *
 * The requestor of a row must be an AppendState.  Ours never runs.  The server
 * and postgres_fdw use as_eventset, the sockets to wait for; as_needrequest,
 * which must be empty when we wait, as a wrapper puts off requests while an
 * Append has rows to return; and as_asyncresults.  Another node that needs the
 * connection may receive our batch, and end our request.  So the state of a
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
#include "utils/resowner.h"
#include "utils/wait_event.h"

#include "base/clock.h"
#include "base/compat.h"
#include "shards/shards.h"

/* That one wait returns; the next one returns the others. */
#define MAX_EVENTS	16

FmsShards *
fms_shards_create(PlanState *parent, PlanState **scans, int count)
{
	FmsShards  *all = palloc0(sizeof(FmsShards));
	AppendState *requestor = makeNode(AppendState);
	int			asynchronous = 0;

	requestor->ps.plan = parent->plan;
	requestor->ps.state = parent->state;
	requestor->as_nasyncplans = count;
	requestor->as_asyncresults = palloc0(count * sizeof(TupleTableSlot *));
	/* the server adds shards that have rows: no memory if all are there */
	requestor->as_needrequest = bms_add_range(NULL, 0, count - 1);
	all->requestor = requestor;
	all->count = count;
	all->scans = scans;
	all->shards = palloc0(count * sizeof(FmsShard));
	for (int i = 0; i < count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		shard->scan = scans[i];
		/* in EvalPlanQual, no scan is */
		if (!scans[i]->async_capable)
			continue;
		asynchronous++;
		shard->context = GenerationContextCreate(CurrentMemoryContext,
												 "fmsort shard",
												 ALLOCSET_SMALL_SIZES);
		shard->slot = ExecInitExtraTupleSlot(parent->state,
											 ExecGetResultType(scans[i]),
											 &TTSOpsMinimalTuple);
		shard->request = palloc0(sizeof(AsyncRequest));
		shard->request->requestor = &requestor->ps;
		shard->request->requestee = scans[i];
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

void
fms_shard_ask(FmsShards *all, FmsShard *shard)
{
	if (shard->request == NULL || shard->asked)
		return;
	shard->asked = true;
	all->requestor->as_nasyncresults = 0;
	ExecAsyncRequest(shard->request);
	if (is_pending(shard))
		shard->batches = Min(shard->batches + 1, 2);
}

/* Waits for events; for none if adding its socket completes a request. */
static int
wait_for_events(FmsShards *all, WaitEvent *events)
{
	AppendState *requestor = all->requestor;
	Bitmapset  *everyone = requestor->as_needrequest;
	WaitEventSet *set = CreateWaitEventSet(FMS_WAIT_EVENT_SET_OWNER,
										   all->count + 2);
	volatile int count = 0;

	requestor->as_eventset = set;
	requestor->as_needrequest = NULL;
	PG_TRY();
	{
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
						  NULL);
		for (int i = 0; i < all->count; i++)
		{
			if (is_pending(&all->shards[i]))
				ExecAsyncConfigureWait(all->shards[i].request);
		}
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
		FreeWaitEventSet(set);
	}
	PG_END_TRY();
	bms_free(requestor->as_needrequest);
	requestor->as_needrequest = everyone;
	return count;
}

/* Waits until a request gets on.  There is one under way. */
static void
wait_for_shards(FmsShards *all)
{
	WaitEvent	events[MAX_EVENTS];
	instr_time	start = fms_clock_now();
	double		elapsed_us;
	int			count;

	all->requestor->as_nasyncresults = 0;
	count = wait_for_events(all, events);
	elapsed_us = fms_clock_since_us(start);
	for (int i = 0; i < all->count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		if (is_pending(shard) && shard->head == NULL)
			shard->wait_us += elapsed_us;
	}
	for (int i = 0; i < count; i++)
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
		}
	}
	CHECK_FOR_INTERRUPTS();
}

void
fms_shards_settle(FmsShards *all)
{
	for (int i = 0; i < all->count; i++)
	{
		while (is_pending(&all->shards[i]))
			wait_for_shards(all);
	}
}

/* ---- rows ---- */

void
fms_shards_reset(FmsShards *all)
{
	fms_shards_settle(all);
	for (int i = 0; i < all->count; i++)
	{
		FmsShard   *shard = &all->shards[i];

		shard->head = NULL;
		shard->asked = false;
		shard->batches = 0;
		shard->next = list_length(shard->rows);
	}
}

/* Is there a row that has not been taken? */
static bool
has_row(const FmsShard *shard)
{
	return shard->asked && !is_pending(shard) &&
		!TupIsNull(shard->request->result);
}

/* Waits for a batch, and copies it unless it is the first. */
static void
receive(FmsShards *all, FmsShard *shard)
{
	MemoryContextReset(shard->context);
	shard->rows = NIL;
	shard->next = 0;
	fms_shard_ask(all, shard);
	while (is_pending(shard))
		wait_for_shards(all);
	while (shard->batches > 1 && has_row(shard) &&
		   MemoryContextMemAllocated(shard->context, false) < all->share_bytes)
	{
		TupleTableSlot *row = shard->request->result;
		MemoryContext caller = MemoryContextSwitchTo(shard->context);

		shard->rows = lappend(shard->rows, ExecCopySlotMinimalTuple(row));
		MemoryContextSwitchTo(caller);
		shard->asked = false;
		fms_shard_ask(all, shard);
	}
	shard->peak_bytes = Max(shard->peak_bytes,
							MemoryContextMemAllocated(shard->context, false));
}

void
fms_shard_next(FmsShards *all, FmsShard *shard)
{
	shard->head = NULL;
	if (shard->request == NULL)
	{
		TupleTableSlot *row = ExecProcNode(shard->scan);

		shard->head = TupIsNull(row) ? NULL : row;
		return;
	}
	if (shard->next == list_length(shard->rows))
		receive(all, shard);
	if (shard->next < list_length(shard->rows))
		shard->head = ExecStoreMinimalTuple(list_nth(shard->rows,
													 shard->next++),
											shard->slot, false);
	else if (has_row(shard))
	{
		shard->head = shard->request->result;
		shard->asked = false;
	}
}
