#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chatproc_fuzz::times(bytes));
