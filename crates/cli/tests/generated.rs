//! What the compilers of interface definitions make of awkward names compiles. Tests of `crates/idl` compare it with what they
//! make now.

#[path = "generated/awkward_idl.rs"]
mod awkward_idl;
#[allow(dead_code, clippy::all)]
#[rustfmt::skip]
#[path = "generated/awkward_x.rs"]
mod awkward_x;
#[allow(dead_code, clippy::all)]
#[rustfmt::skip]
#[path = "generated/quadruple_x.rs"]
mod quadruple_x;

use awkward_idl::inherited::{BothServant, LeftServant, RightServant};
use awkward_idl::made::{IFError, IServant};
use awkward_idl::{THIRD, a, b, same, words};
use sidestep_orb::SystemException;
use sidestep_rpc::xdr::Quadruple;
use sidestep_rpc::{Call, Refusal, Service};

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

    fn into_(&self) -> Result<(), SystemException> {
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

struct Wide;

impl quadruple_x::WideV1Service for Wide {
    fn largest(&self, _: &Call<'_>, _: Quadruple, argument: quadruple_x::Wide) -> Result<Quadruple, Refusal> {
        Ok(argument)
    }

    fn all(&self, _: &Call<'_>, argument: quadruple_x::Wides) -> Result<quadruple_x::Wides, Refusal> {
        Ok(argument)
    }
}

struct V;

impl awkward_x::VService for V {
    fn foo(&self, _: &Call<'_>, _: i32) -> Result<(), Refusal> {
        Ok(())
    }

    fn batch_foo_(&self, _: &Call<'_>, _: awkward_x::VClient) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin_foo_(&self, _: &Call<'_>) -> Result<i32, Refusal> {
        Ok(1)
    }

    fn new_(&self, _: &Call<'_>) -> Result<i32, Refusal> {
        Ok(1)
    }

    fn connect_(&self, _: &Call<'_>, _: &str) -> Result<i32, Refusal> {
        Ok(1)
    }

    fn client_(&self, _: &Call<'_>, argument: awkward_x::VServer) -> Result<awkward_x::VServer, Refusal> {
        Ok(argument)
    }

    fn into_(
        &self,
        _: &Call<'_>,
        argument: awkward_x::Xdr_,
        _: awkward_x::Chosen,
        _: awkward_x::Counted,
    ) -> Result<awkward_x::Xdr_, Refusal> {
        Ok(argument)
    }

    fn null_(
        &self,
        _: &Call<'_>,
        argument: awkward_x::AB__,
        _: awkward_x::Option_,
    ) -> Result<awkward_x::AB__, Refusal> {
        Ok(argument)
    }

    fn foo_(&self, _: &Call<'_>, argument: Quadruple, _: awkward_x::Box_) -> Result<Quadruple, Refusal> {
        Ok(argument)
    }
}

#[test]
fn names_of_a_program_that_meet_are_told_apart() {
    let service = awkward_x::VServer_(V);
    assert_eq!((service.program(), service.version()), (0x2000_0779, 1));
    // What the file says of the procedure, and what is so of every procedure 0.
    assert_eq!([0, 1, 5, 6, 7].map(|procedure| service.repeatable(procedure)), [true, false, false, true, false]);
    assert_eq!(quadruple_x::WideV1Server(Wide).program(), 0x2000_0778);
    assert_eq!((awkward_x::MAX_KEY, awkward_x::MAX_KEY_), (3, 4));
    assert_eq!(awkward_x::Chosen::Default_(1), awkward_x::Chosen::Default_(1));
    assert_eq!(awkward_x::VClient { value: 1 }.value, 1);
}
