//! Loops compiled for several instruction sets, of which the widest that the machine has is run.
//!
//! The loops themselves are plain Rust, which the compiler vectorizes for each set; nothing here depends on what they
//! compute. The one thing that is unsafe is to run instructions that the machine lacks, and it is asked first.

/// Defines a function that runs its body in the widest vectors at hand. Type parameters stand in brackets, and must
/// follow from the arguments; a number that does not is `[const N]`.
#[macro_export]
macro_rules! widest {
    ($(#[$doc:meta])* $vis:vis fn $name:ident [const $number:ident] ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $crate::widest! {
            @ [const $number: usize] [$number] ($(#[$doc])*) ($vis) $name ($($arg: $ty),*) () $body
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident $([$($generic:tt)*])? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $crate::widest! {
            @ [$($($generic)*)?] [] ($(#[$doc])*) ($vis) $name ($($arg: $ty),*) ($($ret)?) $body
        }
    };
    (@ [$($generic:tt)*] [$($number:ident)?] ($(#[$doc:meta])*) ($vis:vis) $name:ident ($($arg:ident: $ty:ty),*) ($($ret:ty)?) $body:block) => {
        $(#[$doc])*
        #[allow(unsafe_code)]
        $vis fn $name <$($generic)*> ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn portable <$($generic)*> ($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")]
                fn avx512 <$($generic)*> ($($arg: $ty),*) $(-> $ret)? {
                    portable$(::<$number>)?($($arg),*)
                }
                #[target_feature(enable = "avx2,bmi2,popcnt")]
                fn avx2 <$($generic)*> ($($arg: $ty),*) $(-> $ret)? {
                    portable$(::<$number>)?($($arg),*)
                }
                match $crate::widest::machine() {
                    // SAFETY: the machine has these instructions.
                    $crate::widest::Machine::Avx512 => return unsafe { avx512$(::<$number>)?($($arg),*) },
                    // SAFETY: the machine has these instructions.
                    $crate::widest::Machine::Avx2 => return unsafe { avx2$(::<$number>)?($($arg),*) },
                    $crate::widest::Machine::Portable => {}
                }
            }
            portable$(::<$number>)?($($arg),*)
        }
    };
}
/// Sets of instructions for which loops are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    Portable,
    Avx2,
    Avx512,
}

/// What this machine has; asked once.
#[inline]
pub fn machine() -> Machine {
    static FOUND: std::sync::OnceLock<Machine> = std::sync::OnceLock::new();
    *FOUND.get_or_init(find)
}

#[cfg(target_arch = "x86_64")]
fn find() -> Machine {
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let has_bits = is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt");
    match has_bits {
        true if has_avx512 => Machine::Avx512,
        true if is_x86_feature_detected!("avx2") => Machine::Avx2,
        _ => Machine::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn find() -> Machine {
    Machine::Portable
}
