//! Calls the object of a reference.

use std::error::Error;

use sidestep_orb::Orb;

use crate::echo::example::{Echo, EchoSayError};

pub fn run(reference: &str) -> Result<(), Box<dyn Error>> {
    let orb = Orb::builder().build()?;
    let echo: Echo = orb.string_to_object(reference)?.narrow()?.ok_or("the object is no Echo")?;
    println!("{}", echo.say("hello")?);

    // Sent now, collected later: both are under way together.
    let first = echo.begin_say("one")?;
    let second = echo.begin_say("two")?;
    println!("{} {}", first.collect()?, second.collect()?);

    match echo.say("") {
        Err(EchoSayError::Silence(silence)) => println!("refused: {}", silence.why),
        other => println!("unexpected: {other:?}"),
    }
    println!("{} times", echo.count()?);
    Ok(())
}
