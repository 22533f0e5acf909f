use super::*;

#[test]
fn each_byte_is_taken_once() {
    let heirloom = Heirloom::copy(b"every byte once").unwrap();
    let mut bytes = [0; 6];
    assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut bytes)], libc::MSG_PEEK), 6);
    assert_eq!(heirloom.left(), 15);
    let (first, second) = bytes.split_at_mut(2);
    assert_eq!(heirloom.take(&mut [IoSliceMut::new(first), IoSliceMut::new(second)], 0), 6);
    assert_eq!(&bytes, b"every ");
    let mut rest = [0; 20];
    assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut rest)], 0), 9);
    assert_eq!(&rest[..9], b"byte once");
    assert_eq!((heirloom.left(), heirloom.take(&mut [IoSliceMut::new(&mut rest)], 0)), (0, 0));
}

#[test]
fn a_program_that_is_executed_shares_what_is_left() {
    const COOKIE: u64 = 77;
    let heirloom = Heirloom::copy(b"shared by two").unwrap();
    let len = HEAD + 13;
    let file = || heirloom.file(COOKIE).unwrap().try_clone().unwrap();
    let mut bytes = [0; 7];
    assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut bytes)], 0), 7);
    assert!(Heirloom::attach(file(), len, COOKIE + 1, None).is_none(), "another socket's");
    assert!(Heirloom::attach(file(), len + 1, COOKIE, None).is_none(), "another length");
    let executed = Heirloom::attach(file(), len, COOKIE, None).unwrap();
    let mut rest = [0; 20];
    assert_eq!(executed.take(&mut [IoSliceMut::new(&mut rest[..3])], 0), 3);
    assert_eq!(&rest[..3], b"by ");
    assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut rest)], 0), 3);
    assert_eq!((&rest[..3], executed.left()), (&b"two"[..], 0));
}
