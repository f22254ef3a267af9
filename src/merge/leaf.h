/*-------------------------------------------------------------------------
 *
 * leaf.h
 *	  The leaves of the merge: the input of one run each, record by record.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LEAF_H
#define FMS_LEAF_H

#include "merge/input.h"

typedef struct FmsLeaf
{
	const FmsRecord *record;	/* head or first key; NULL: end of the run */
	bool		is_first_key;	/* of the next block, not asked for yet */

	FmsFrame   *frame;			/* the sort block; NULL: none */
	char	   *bytes;			/* the block, its packed records, or a chunk */
	uint32		at_bytes;		/* offset of the next record in bytes */
	uint32		end_bytes;		/* end of the last record in bytes */
	uint32		chunk_at_bytes; /* offset of the next chunk in the block */
	bool		is_packed;		/* bytes has packed records */
	uint32		records_left;	/* in the block, the head not counted */
	uint32		blocks_left;	/* of the run, not asked for yet */
	uint32		blocks_freed;	/* of the run, whose file space is free */

	char	   *assembly;		/* the head if it extends over blocks */
	uint32		assembly_block; /* number of the block it begins in */

	char	   *chunk;			/* records of a chunk; NULL: no chunk yet */
	char	   *unpacked;		/* a packed record; NULL: none yet */
} FmsLeaf;

typedef struct FmsLeaves
{
	const FmsMergePlan *plan;
	FmsInput	input;
	int			count;			/* runs, and the in-memory run if any */
	FmsLeaf    *leaf;			/* [count]; the in-memory run is the last */
	uint64		in_memory_record;	/* number of the in-memory run's head */
	double		load_us;		/* see fms_merge_load_us() */
} FmsLeaves;

/* Opens the leaf of a run at the run's beginning, or at from. */
extern void fms_leaf_begin(FmsLeaves *leaves, int run,
						   const FmsPosition *from);

/* Makes the in-memory run's record of that number its head. */
extern void fms_leaf_take_in_memory(FmsLeaves *leaves, uint64 number);

/* Gets the block whose first key stands in the tree, with the same key. */
extern void fms_leaf_enter_block(FmsLeaves *leaves, int run);

/* Position of the leaf's head, for FmsPosition's fields of a run. */
extern FmsPosition fms_leaf_position(const FmsLeaves *leaves, int run);

/* Frees the leaf's buffers; the mode owns its frame. */
extern void fms_leaf_end(FmsLeaf *leaf);

/* Parts of fms_leaf_advance() */
extern void fms_leaf_next_block(FmsLeaves *leaves, int run);
extern void fms_leaf_unpack_chunk(FmsLeaves *leaves, int run);
extern const FmsRecord *fms_leaf_unpack(FmsLeaves *leaves, int run);
extern const FmsRecord *fms_leaf_assemble(FmsLeaves *leaves, int run,
										  uint32 size_bytes);
extern void fms_leaf_report_bad_block(const FmsLeaf *leaf)
			__attribute__((noreturn, cold));

/* Makes the next record of the leaf's block its head. */
static pg_attribute_always_inline void
fms_leaf_take_record(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	const FmsRecord *record;
	uint32		left;
	uint32		bytes;

	leaf->is_first_key = false;
	leaf->records_left--;
	if (leaf->is_packed)
	{
		leaf->record = fms_leaf_unpack(leaves, run);
		return;
	}
	if (unlikely(leaf->at_bytes == leaf->end_bytes))
		fms_leaf_unpack_chunk(leaves, run);
	left = leaf->end_bytes - leaf->at_bytes;
	record = (const FmsRecord *) (leaf->bytes + leaf->at_bytes);
	if (unlikely(left < sizeof(FmsRecord) || !fms_record_is_sane(record)))
		fms_leaf_report_bad_block(leaf);
	bytes = fms_record_bytes(record);
	if (likely(bytes <= left))
	{
		leaf->at_bytes += bytes;
		/* the merge compares the next record's key once this one has left */
		__builtin_prefetch(leaf->bytes + leaf->at_bytes);
	}
	else if (leaf->records_left == 0 && leaf->bytes == leaf->frame->block)
		record = fms_leaf_assemble(leaves, run, bytes);
	else
		fms_leaf_report_bad_block(leaf);

	leaf->record = record;
}

/* Moves on from the head, whose record has left. */
static pg_attribute_always_inline void
fms_leaf_advance(FmsLeaves *leaves, int run)
{
	if (unlikely(run == leaves->input.nruns))
		fms_leaf_take_in_memory(leaves, leaves->in_memory_record + 1);
	else if (likely(leaves->leaf[run].records_left > 0))
		fms_leaf_take_record(leaves, run);
	else
		fms_leaf_next_block(leaves, run);
}

#endif							/* FMS_LEAF_H */
