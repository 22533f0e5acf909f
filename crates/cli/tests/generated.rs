//! What the compilers of interface definitions make of names that are awkward in Rust compiles, and is what they make now
//! (`crates/idl/tests`).

#[path = "generated/awkward_idl.rs"]
mod awkward_idl;

use awkward_idl::inherited::{BothServant, LeftServant, RightServant};
use awkward_idl::made::{IFError, IServant};
use awkward_idl::{THIRD, a, b, same, words};
use sidestep_orb::SystemException;

struct Both;

impl LeftServant for Both {
    fn foo_bar(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn only_left(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl RightServant for Both {
    fn foo_bar(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn begin_foo_bar_(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl BothServant for Both {
    fn foo_bar__(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn begin_only_left_(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

struct Made;

impl IServant for Made {
    fn x(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn set_x(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn set_x_(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn f(&self) -> Result<(), IFError> {
        Err(IFError::X_(b::X { code: "both".to_owned() }))
    }

    fn begin_f_(&self, _: String, _: String, _: i32, _: i32, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn plain(&self, encoder_: i32, foo_bar: String, _: String) -> Result<(i32, i32, String), SystemException> {
        Ok((encoder_, encoder_, foo_bar))
    }
}

/// The names are those that the documentation promises: the first one stays, others get an underscore.
#[test]
fn names_of_idl_that_meet_are_told_apart() {
    fn is_servant<T: sidestep_orb::Servant>(_: &T) {}
    is_servant(&awkward_idl::inherited::BothSkeleton(Both));
    is_servant(&awkward_idl::made::ISkeleton(Made));
    assert_eq!((words::FOO_BAR, words::FOO_BAR_), (1, 2));
    assert_eq!(words::E::Ab as u32 + 1, words::E::Ab_ as u32);
    assert_eq!(same::Pair { foo_bar: 1, foo_bar_: 2, foo_bar__: 3 }.foo_bar_, 2);
    assert_eq!(same::Switched::NoMember_(true), same::Switched::NoMember_(true));
    assert_eq!(IFError::from(a::X { code: 1 }), IFError::X(a::X { code: 1 }));
    assert!(matches!(Made.f(), Err(IFError::X_(_))));
    assert_eq!(THIRD.unscaled(), 3_333_333_333_333_333_333_333_333_333_333);
}
