//! What the list of calls becomes in the library: an exported function for each name, and the next function behind it.
//!
//! A test reads the same list with another definition of the macro and makes the table of `docs/preload.md` of it.

/// One exported function. `rust` has a body in Rust; `asm` stands, under its name, where its body is.
macro_rules! exported {
    (rust $name:ident ($($argument:ident: $type:ty),*) -> $returned:ty => $body:path) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $returned {
            // SAFETY: P1.
            unsafe { $body($($argument),*) }
        }
    };
    (asm $name:ident $($rest:tt)*) => {};
}

/// What calls the next function of a name.
macro_rules! called {
    ($name:ident ($($argument:ident: $type:ty),*) -> $returned:ty, raw $number:ident) => {
        #[inline]
        pub unsafe fn $name($($argument: $type),*) -> $returned {
            let Some(pointer) = super::next::$name.get() else {
                let mut arguments = [0usize; 6];
                for (place, argument) in arguments.iter_mut().zip([$($argument as usize),*]) {
                    *place = argument;
                }
                // SAFETY: P1; the call of this number takes the same arguments as the function of this name.
                let result = unsafe { sidestep_sockets::kernel::syscall(libc::$number, arguments) };
                return crate::errno::answer(result) as $returned;
            };
            // SAFETY: P2.
            let function: unsafe extern "C-unwind" fn($($type),*) -> $returned = unsafe { std::mem::transmute(pointer) };
            // SAFETY: P1, P3.
            unsafe { function($($argument),*) }
        }
    };
    ($name:ident ($($argument:ident: $type:ty),*) -> $returned:ty) => {
        #[inline]
        #[allow(dead_code)]
        pub unsafe fn $name($($argument: $type),*) -> $returned {
            let Some(pointer) = super::next::$name.find() else {
                crate::errno::set(libc::ENOSYS);
                return crate::real::Failed::FAILED;
            };
            // SAFETY: P2.
            let function: unsafe extern "C-unwind" fn($($type),*) -> $returned = unsafe { std::mem::transmute(pointer) };
            // SAFETY: P1, P3.
            unsafe { function($($argument),*) }
        }
    };
}

/// The list, as the library sees it.
macro_rules! intercepted {
    ($($title:literal {
        $([$kind:ident $(, raw $number:ident)?] $name:ident ($($argument:ident: $type:ty),* $(,)?) -> $returned:ty
            => $body:path $(, also $($alias:ident)+)?; $verdict:ident $why:literal;)*
    })*) => {
        /// The exported functions.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod exports {
            use super::*;
            $($(
                exported!($kind $name ($($argument: $type),*) -> $returned => $body);
                intercepted!(@aliases $kind ($($argument: $type),*) -> $returned => $body; $($($alias)+)?);
            )*)*
        }

        /// The next function of each name.
        #[allow(non_upper_case_globals)]
        pub mod next {
            use crate::real::Next;
            $($(
                pub static $name: Next = Next::new(concat!(stringify!($name), "\0"));
            )*)*
            pub static ALL: &[&Next] = &[$($(&$name),*),*];
        }

        /// Calls of the next function of each name.
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]
        pub mod call {
            use super::*;
            $($(
                called!($name ($($argument: $type),*) -> $returned $(, raw $number)?);
            )*)*
        }
    };
    (@aliases $kind:ident $arguments:tt -> $returned:ty => $body:path;) => {};
    (@aliases $kind:ident $arguments:tt -> $returned:ty => $body:path; $alias:ident $($rest:ident)*) => {
        exported!($kind $alias $arguments -> $returned => $body);
        intercepted!(@aliases $kind $arguments -> $returned => $body; $($rest)*);
    };
}

/// The body of a naked function that calls a hook with its own first arguments and then goes on, with all of them and
/// the caller's stack untouched, to the address that the hook returned. For variadic functions.
macro_rules! hook_then_go_on {
    ($hook:path) => {{
        #[cfg(target_arch = "x86_64")]
        naked_asm!(
            "push rax", // how many vector registers hold arguments
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 128",
            "movups [rsp], xmm0",
            "movups [rsp + 16], xmm1",
            "movups [rsp + 32], xmm2",
            "movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4",
            "movups [rsp + 80], xmm5",
            "movups [rsp + 96], xmm6",
            "movups [rsp + 112], xmm7",
            "call {hook}@PLT",
            "mov r11, rax",
            "movups xmm0, [rsp]",
            "movups xmm1, [rsp + 16]",
            "movups xmm2, [rsp + 32]",
            "movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]",
            "movups xmm5, [rsp + 80]",
            "movups xmm6, [rsp + 96]",
            "movups xmm7, [rsp + 112]",
            "add rsp, 128",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "pop rax",
            "jmp r11",
            hook = sym $hook,
        );
        #[cfg(target_arch = "aarch64")]
        naked_asm!(
            "stp x29, x30, [sp, #-208]!",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "stp q0, q1, [sp, #80]",
            "stp q2, q3, [sp, #112]",
            "stp q4, q5, [sp, #144]",
            "stp q6, q7, [sp, #176]",
            "bl {hook}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldp q0, q1, [sp, #80]",
            "ldp q2, q3, [sp, #112]",
            "ldp q4, q5, [sp, #144]",
            "ldp q6, q7, [sp, #176]",
            "ldp x29, x30, [sp], #208",
            "br x16",
            hook = sym $hook,
        );
    }};
}
