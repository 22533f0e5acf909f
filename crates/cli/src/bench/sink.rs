//! Where the records of a run go: to the output, if they were asked for as JSON, and into what is kept of the run.

use super::record::Record;

/// Takes the records of a run.
pub struct Sink {
    form: Form,
    records: Vec<Record>,
}

/// What is printed while it is measured.
#[derive(PartialEq)]
enum Form {
    Tables,
    Json,
    Nothing,
}

impl Sink {
    /// An empty one, which prints what it takes if `is_json`.
    pub fn new(is_json: bool) -> Sink {
        Sink { form: if is_json { Form::Json } else { Form::Tables }, records: Vec::new() }
    }

    /// An empty one that prints nothing.
    pub fn silent() -> Sink {
        Sink { form: Form::Nothing, records: Vec::new() }
    }

    /// Whether no tables are printed.
    pub fn is_json(&self) -> bool {
        self.form != Form::Tables
    }

    /// Takes records.
    pub fn take(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            if self.form == Form::Json {
                println!("{}", record.json());
            }
            self.records.push(record);
        }
    }

    /// Keeps records that were shown in another form.
    pub fn keep(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    /// All that were taken, in order.
    pub fn into_records(self) -> Vec<Record> {
        self.records
    }
}
