//! The program's own code on huge pages (docs/decisions/0012).
//!
//! A statement runs through code that is scattered over tens of megabytes. On pages of 4 KiB the processor keeps
//! forgetting where they are; a few dozen pages of 2 MiB hold all of it. Linux gives those to files only in some builds,
//! so the code is copied to anonymous memory, and the copy is moved to where the code was: one system call, before and
//! after which the same instructions stand there.

#![allow(unsafe_code, clippy::disallowed_methods)]

use std::ffi::c_void;
use std::io;
use std::ops::Range;

const HUGE: usize = 2 << 20;
/// What the kernel does about huge pages: the word in brackets holds.
const POLICY: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Moves the code of the running program to huge pages, and gives how many bytes were moved: none where the kernel does
/// not give such pages. Profilers that look into the program's file find no names for it any more.
pub fn move_code() -> io::Result<usize> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(0);
    }
    if std::fs::read_to_string(POLICY).map_or(true, |policy| policy.contains("[never]")) {
        return Ok(0);
    }
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let Some(code) = code_around(&maps, move_code as fn() -> io::Result<usize> as usize) else { return Ok(0) };
    let whole = code.start.next_multiple_of(HUGE)..code.end / HUGE * HUGE;
    if whole.is_empty() {
        return Ok(0);
    }
    // SAFETY: `whole` lies within one mapping of this program's file, which is never unmapped and which nobody writes to.
    unsafe { replace(whole) }
}

/// The mapping that holds an address, if it is code of a file.
fn code_around(maps: &str, address: usize) -> Option<Range<usize>> {
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let is_code = words.next()?.starts_with("r-xp");
        let is_file = words.nth(3)?.starts_with('/');
        (range.contains(&address) && is_code && is_file).then_some(range)
    };
    maps.lines().find_map(mapping)
}

/// Puts a copy in the place of `code`, which begins and ends with huge pages.
///
/// # Safety
///
/// `code` is mapped, readable, and not changed by anybody.
unsafe fn replace(code: Range<usize>) -> io::Result<usize> {
    let bytes = code.len();
    // SAFETY: the memory is new and nobody else's: `copy` is a part of it that begins with a huge page and is as long as
    // `code`. It has `code`'s bytes and the protection of code before the kernel puts it in `code`'s place, under the
    // lock of the address space: whoever runs there finds the same instructions before and after. What of `room` is not
    // moved is given back, and nothing points there.
    unsafe {
        let (writable, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let room = mapped(libc::mmap(std::ptr::null_mut(), bytes + HUGE, writable, private, -1, 0))?;
        let before = room.align_offset(HUGE);
        let copy = room.byte_add(before);
        let moved = (|| {
            done(libc::madvise(copy, bytes, libc::MADV_HUGEPAGE))?;
            std::ptr::copy_nonoverlapping(code.start as *const u8, copy.cast(), bytes);
            done(libc::mprotect(copy, bytes, libc::PROT_READ | libc::PROT_EXEC))?;
            let here = code.start as *mut c_void;
            mapped(libc::mremap(copy, bytes, bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, here))
        })();
        let rest = match moved {
            Ok(_) => vec![(room, before), (copy.byte_add(bytes), HUGE - before)],
            Err(_) => vec![(room, bytes + HUGE)],
        };
        for (start, len) in rest.into_iter().filter(|(_, len)| *len > 0) {
            done(libc::munmap(start, len))?;
        }
        moved?;
    }
    Ok(bytes)
}

fn mapped(address: *mut c_void) -> io::Result<*mut c_void> {
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address) }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_by_an_address_in_it() {
        let maps = "\
55d000-56e000 r--p 00000000 fe:00 12   /usr/bin/basalt
56e000-9fe000 r-xp 00011000 fe:00 12   /usr/bin/basalt
9fe000-a00000 rw-p 004a1000 fe:00 12   /usr/bin/basalt
a00000-b00000 r-xp 00000000 00:00 0
b00000-c00000 r-xp 00000000 00:00 0    [vdso]
";
        assert_eq!(code_around(maps, 0x56e000), Some(0x56e000..0x9fe000));
        assert_eq!(code_around(maps, 0x9fdfff), Some(0x56e000..0x9fe000));
        for elsewhere in [0x55d000, 0x9fe000, 0xa00000, 0xb00010, 0x10] {
            assert_eq!(code_around(maps, elsewhere), None, "{elsewhere:x}");
        }
    }

    #[test]
    fn code_runs_on_while_it_is_moved() {
        let sum = |n: u64| (0..n).fold(1u64, |sum, next| sum.wrapping_mul(31).wrapping_add(std::hint::black_box(next)));
        let wanted = sum(1000);
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..3).map(|_| scope.spawn(|| (0..20_000).all(|_| sum(1000) == wanted))).collect();
            let moved = move_code().expect("moved");
            let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
            let here = code_runs_on_while_it_is_moved as fn() as usize;
            assert_eq!(moved == 0, code_around(&maps, here).is_some(), "{moved} bytes, {maps}");
            assert!(others.into_iter().all(|other| other.join().expect("ran")));
        });
        assert_eq!(sum(1000), wanted);
    }
}
