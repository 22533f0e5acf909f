//! The options of `sidestep run` on its command line, made from the table that the library reads them by.

use std::{env, ffi::OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser},
    parser::ValueSource,
};
use sidestep_sockets::config::options::{self, RunOption, Values};

/// What `sidestep run` was told.
#[derive(Debug)]
pub struct Run {
    /// The options that have a value: the environment variable of each, and the value.
    pub environment: Vec<(&'static str, String)>,
    /// The names of options that stood on the command line.
    by_hand: Vec<&'static str>,
    /// The program to run, and its arguments.
    pub command: Vec<OsString>,
}

impl Run {
    /// The value of an option.
    pub fn value(&self, option: &RunOption) -> &str {
        let found = self.environment.iter().find(|(variable, _)| *variable == option.variable);
        found.map_or(option.default, |(_, value)| value)
    }

    /// Whether an option stood on the command line, and was not left to its variable or its default.
    pub fn is_by_hand(&self, option: &RunOption) -> bool {
        self.by_hand.contains(&option.name)
    }
}

impl Args for Run {
    fn augment_args(command: Command) -> Command {
        let program = Arg::new(PROGRAM)
            .help("The program to run, and its arguments")
            .value_name("PROGRAM")
            .value_parser(clap::value_parser!(OsString))
            .required(true)
            .num_args(1..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true);
        command.args(options::ALL.map(argument)).arg(program).after_long_help(RULES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Run, Error> {
        let given = |option: &RunOption| match option.values {
            Values::Flag => matches.get_flag(option.name).then(|| "true".to_owned()),
            _ => {
                let values: Vec<String> = matches.get_many(option.name).into_iter().flatten().cloned().collect();
                Some(values.join(",")).filter(|value| !value.is_empty())
            }
        };
        let environment = options::ALL.iter().filter_map(|option| Some((option.variable, given(option)?))).collect();
        let stood = |option: &&RunOption| matches.value_source(option.name) == Some(ValueSource::CommandLine);
        let by_hand = options::ALL.iter().filter(stood).map(|option| option.name).collect();
        let command = matches.get_many(PROGRAM).into_iter().flatten().cloned().collect();
        Ok(Run { environment, by_hand, command })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Run::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An option of the table as the command line has it.
fn argument(option: RunOption) -> Arg {
    let mut argument = Arg::new(option.name).long(option.name).help(option.help);
    // An empty variable is one that is not set.
    if env::var_os(option.variable).is_none_or(|value| !value.is_empty()) {
        argument = argument.env(option.variable);
    }
    if !option.default.is_empty() {
        argument = argument.default_value(option.default);
    }
    match option.values {
        Values::OneOf(words) => {
            let words = words.iter().map(|(name, help)| PossibleValue::new(*name).help(*help));
            argument.value_name("WORD").value_parser(PossibleValuesParser::new(words))
        }
        Values::Text { name, repeats, .. } => {
            let check = move |value: &str| match option.check(value) {
                Ok(()) => Ok(value.to_owned()),
                Err(why) => Err(format!("{why}; it takes {}", option.allowed())),
            };
            let action = if repeats { ArgAction::Append } else { ArgAction::Set };
            argument.value_name(name).value_parser(check).action(action)
        }
        Values::Flag => argument.short(option.name.chars().next()).action(ArgAction::SetTrue),
    }
}

const PROGRAM: &str = "program";

const RULES: &str = "\
Rules:
  A rule is a verdict and its conditions: VERDICT:CONDITION[;CONDITION...]
    VERDICT    allow or deny
    CONDITION  port=N        either end has this port
               addr=A[/BITS] either end has an address of this network
               all           any connection
  All conditions of a rule must fit; the first rule that fits decides; a connection that fits none is allowed.
    --rule deny:port=5432
    --rule 'allow:addr=10.0.0.0/8;port=80' --rule deny:all

Exit status:
  That of the program; 126 if it cannot be executed, 127 if it is not found, 125 if sidestep itself fails.";
