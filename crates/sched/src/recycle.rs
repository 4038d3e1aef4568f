//! Blocks that a thread of queries frees are the first that it gets again (docs/decisions/0023).
//!
//! Operators ask for vectors of a batch, fill them, and free them, thousands of times a second. An allocator that hands
//! its free blocks out in turn gives each time the one that was freed longest ago: its lines have left the processor's
//! cache by then, and whatever is decoded into it waits for memory. Here the block that was freed last comes first.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;

/// Sizes that are kept: from a few hundred numbers to a batch of the widest values.
const BYTES_MIN: usize = 1 << 10;
const BYTES_MAX: usize = 256 << 10;
/// Sizes are rounded up to a quarter of a power of two, as the allocators behind this one do themselves.
const CLASSES: usize = ((BYTES_MAX / BYTES_MIN).ilog2() as usize) * 4 + 1;
/// Alignments up to the first are one kind of blocks, up to the second (Arrow's buffers) another one.
const ALIGNS: [usize; 2] = [16, 128];
/// As many blocks of a class as an operator has vectors at once.
const DEPTH: usize = 16;
/// What a thread keeps at most: more would not stay in the caches anyway.
const KEPT_BYTES_MAX: usize = 2 << 20;

/// Free blocks of one class, the one that was freed last at the end.
#[derive(Clone, Copy)]
struct Stack {
    blocks: [*mut u8; DEPTH],
    count: usize,
}

struct Kept {
    /// Whether this thread keeps blocks.
    on: bool,
    bytes: usize,
    stacks: [[Stack; CLASSES]; ALIGNS.len()],
}

thread_local! {
    // Neither made nor dropped by code, so that it may be used wherever memory is asked for.
    static KEPT: UnsafeCell<Kept> = const {
        let none = Stack { blocks: [ptr::null_mut(); DEPTH], count: 0 };
        UnsafeCell::new(Kept { on: false, bytes: 0, stacks: [[none; CLASSES]; ALIGNS.len()] })
    };
}

/// From now on the calling thread keeps blocks that it frees.
pub fn begin() {
    with_kept(|kept| kept.on = true);
}

/// Gives back what the calling thread keeps, and keeps no more: to be called before it ends.
pub fn end() {
    with_kept(|kept| kept.on = false);
    for aligned in 0..ALIGNS.len() {
        for class in 0..CLASSES {
            while let Some(block) = with_kept(|kept| kept.take(aligned, class)) {
                let layout = layout_of(aligned, class);
                // SAFETY: it was had from the global allocator by a layout of this class, which `Recycling` rounds to
                // the same one; and as nothing is kept now, it goes to the allocator behind.
                unsafe { std::alloc::dealloc(block, layout) };
            }
        }
    }
}

fn with_kept<R>(look: impl FnOnce(&mut Kept) -> R) -> R {
    // SAFETY: only this thread has it, and `look` neither asks for memory nor comes here again.
    KEPT.with(|kept| look(unsafe { &mut *kept.get() }))
}

impl Kept {
    fn take(&mut self, aligned: usize, class: usize) -> Option<*mut u8> {
        let stack = &mut self.stacks[aligned][class];
        stack.count = stack.count.checked_sub(1)?;
        self.bytes -= bytes_of(class);
        Some(stack.blocks[stack.count])
    }

    /// Whether it is kept.
    fn put(&mut self, aligned: usize, class: usize, block: *mut u8) -> bool {
        let stack = &mut self.stacks[aligned][class];
        let fits = self.on && stack.count < DEPTH && self.bytes + bytes_of(class) <= KEPT_BYTES_MAX;
        if fits {
            stack.blocks[stack.count] = block;
            stack.count += 1;
            self.bytes += bytes_of(class);
        }
        fits
    }
}

/// Which kind of block serves a layout: of alignments, and of sizes.
#[inline]
fn class_of(layout: Layout) -> Option<(usize, usize)> {
    let bytes = layout.size();
    if bytes.wrapping_sub(BYTES_MIN) > BYTES_MAX - BYTES_MIN || layout.align() > ALIGNS[1] {
        return None;
    }
    let power = (bytes - 1).ilog2();
    // A quarter of the power of two below: 1 to 4 of them above it.
    let quarters = ((bytes - 1) >> (power - 2)) & 3;
    let class = (power as usize + 1 - BYTES_MIN.ilog2() as usize) * 4 + quarters;
    // The least size is the last of the power below.
    Some((usize::from(layout.align() > ALIGNS[0]), class - 3))
}

const fn bytes_of(class: usize) -> usize {
    let at = class + 3;
    let half = BYTES_MIN >> 1 << (at / 4);
    half + (at % 4 + 1) * (half / 4)
}

fn layout_of(aligned: usize, class: usize) -> Layout {
    Layout::from_size_align(bytes_of(class), ALIGNS[aligned]).expect("powers of two, of small sizes")
}

/// An allocator, with blocks kept for threads that said [`begin`].
pub struct Recycling<A>(pub A);

// SAFETY: a block that is kept was had from the allocator behind by the layout of its class, and was freed; it is handed
// out for layouts of that class alone, which it satisfies, and to one owner at a time. What is not kept is the other's.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recycling<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            // SAFETY: the caller's promises are passed on.
            None => unsafe { self.0.alloc(layout) },
            Some((aligned, class)) => match with_kept(|kept| kept.take(aligned, class)) {
                Some(block) => block,
                // SAFETY: the layout is not of size 0.
                None => unsafe { self.0.alloc(layout_of(aligned, class)) },
            },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            // SAFETY: as above.
            None => unsafe { self.0.alloc_zeroed(layout) },
            Some((aligned, class)) => match with_kept(|kept| kept.take(aligned, class)) {
                Some(block) => {
                    // SAFETY: a block of the class is not smaller.
                    unsafe { ptr::write_bytes(block, 0, layout.size()) };
                    block
                }
                // SAFETY: as above.
                None => unsafe { self.0.alloc_zeroed(layout_of(aligned, class)) },
            },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class_of(layout) {
            // SAFETY: the caller's promises are passed on.
            None => unsafe { self.0.dealloc(block, layout) },
            Some((aligned, class)) => {
                if !with_kept(|kept| kept.put(aligned, class, block)) {
                    // SAFETY: it was had by this layout, here or in another thread.
                    unsafe { self.0.dealloc(block, layout_of(aligned, class)) }
                }
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that this size, rounded up to the alignment, is a possible one.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (class_of(layout), class_of(wanted)) {
            // SAFETY: the caller's promises are passed on.
            (None, None) => unsafe { self.0.realloc(block, layout, bytes) },
            (had, wants) if had == wants => block,
            _ => {
                // SAFETY: the blocks are different ones, and as many bytes are in both; the old one is freed once.
                unsafe {
                    let fresh = self.alloc(wanted);
                    if !fresh.is_null() {
                        ptr::copy_nonoverlapping(block, fresh, layout.size().min(bytes));
                        self.dealloc(block, layout);
                    }
                    fresh
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
