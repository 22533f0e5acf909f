//! Every row of the table, and every sequence of a few inputs.

use super::{
    Input::{Read, ReadDone, Update, UpdateDone},
    Output::{ReadProceeds, UpdateProceeds},
    *,
};

const A: RequestId = RequestId(1);
const B: RequestId = RequestId(2);
const U: RequestId = RequestId(9);

/// The four states of the table: the read queue, then the update queue.
fn state(reads: bool, updates: bool) -> Document {
    let mut document = Document::default();
    if reads {
        document.step(Read(A)).unwrap();
    }
    if updates {
        document.step(Update(U)).unwrap();
    }
    assert_eq!((document.readers.is_empty(), document.update.is_none()), (!reads, !updates));
    document
}

/// A step from one of the states, and what the queues hold after it.
fn row(reads: bool, updates: bool, input: Input) -> (Result<Vec<Output>, Misuse>, Vec<RequestId>, Vec<RequestId>) {
    let mut document = state(reads, updates);
    let before = document.clone();
    let outcome = document.step(input);
    if outcome.is_err() {
        assert_eq!(document, before, "an error changes nothing");
    }
    let queued = document.update.into_iter().chain(document.waiting.iter().copied());
    (outcome, document.readers.iter().copied().collect(), queued.collect())
}

#[test]
fn row_1_a_read_of_an_idle_document_proceeds() {
    assert_eq!(row(false, false, Read(B)), (Ok(vec![ReadProceeds(B)]), vec![B], vec![]));
}

#[test]
fn row_2_a_read_beside_others_proceeds() {
    assert_eq!(row(true, false, Read(B)), (Ok(vec![ReadProceeds(B)]), vec![A, B], vec![]));
}

#[test]
fn row_3_a_read_during_an_update_waits_behind_it() {
    assert_eq!(row(false, true, Read(B)), (Ok(vec![]), vec![], vec![U, B]));
}

#[test]
fn row_4_a_read_after_a_waiting_update_waits_behind_it() {
    assert_eq!(row(true, true, Read(B)), (Ok(vec![]), vec![A], vec![U, B]));
}

#[test]
fn row_5_the_end_of_a_read_during_an_update_cannot_be() {
    assert_eq!(row(false, true, ReadDone(A)), (Err(Misuse::NotReading(A)), vec![], vec![U]));
}

#[test]
fn row_6_the_end_of_a_read_takes_the_reader_out() {
    assert_eq!(row(true, false, ReadDone(A)), (Ok(vec![]), vec![], vec![]));
}

#[test]
fn row_7_the_end_of_the_last_read_lets_the_update_proceed() {
    assert_eq!(row(true, true, ReadDone(A)), (Ok(vec![UpdateProceeds(U)]), vec![], vec![U]));
    let mut document = Document::default();
    for input in [Read(A), Read(B), Update(U)] {
        document.step(input).unwrap();
    }
    assert_eq!(document.step(ReadDone(B)), Ok(vec![]), "one still reads");
    assert_eq!(document.step(ReadDone(A)), Ok(vec![UpdateProceeds(U)]));
}

#[test]
fn row_8_an_update_of_an_idle_document_proceeds() {
    assert_eq!(row(false, false, Update(U)), (Ok(vec![UpdateProceeds(U)]), vec![], vec![U]));
}

#[test]
fn row_9_an_update_during_another_cannot_be() {
    assert_eq!(row(false, true, Update(B)), (Err(Misuse::SecondUpdate), vec![], vec![U]));
}

#[test]
fn row_10_an_update_waits_for_the_readers() {
    assert_eq!(row(true, false, Update(U)), (Ok(vec![]), vec![A], vec![U]));
}

#[test]
fn row_11_an_update_behind_a_waiting_one_cannot_be() {
    assert_eq!(row(true, true, Update(B)), (Err(Misuse::SecondUpdate), vec![A], vec![U]));
}

#[test]
fn row_12_the_end_of_no_update_cannot_be() {
    assert_eq!(row(false, false, UpdateDone), (Err(Misuse::NotUpdating), vec![], vec![]));
}

#[test]
fn row_13_the_end_of_an_update_lets_the_waiting_readers_proceed() {
    assert_eq!(row(false, true, UpdateDone), (Ok(vec![]), vec![], vec![]));
    let mut document = state(false, true);
    document.step(Read(A)).unwrap();
    document.step(Read(B)).unwrap();
    assert_eq!(document.step(UpdateDone), Ok(vec![ReadProceeds(A), ReadProceeds(B)]));
    assert_eq!(document.readers, [A, B]);
    assert!(document.update.is_none() && document.waiting.is_empty());
}

#[test]
fn row_14_the_end_of_an_update_that_waits_cannot_be() {
    assert_eq!(row(true, true, UpdateDone), (Err(Misuse::NotUpdating), vec![A], vec![U]));
}

#[test]
fn states_that_the_table_leaves_out_are_errors() {
    assert_eq!(row(false, false, ReadDone(A)), (Err(Misuse::NotReading(A)), vec![], vec![]));
    assert_eq!(row(true, false, UpdateDone), (Err(Misuse::NotUpdating), vec![A], vec![]));
}

/// Every sequence of eight inputs of three readers and a writer: nobody reads during an update, everybody who waits
/// gets on in the end, and nobody proceeds twice.
#[test]
fn every_sequence_keeps_readers_and_the_writer_apart() {
    let readers = [RequestId(1), RequestId(2), RequestId(3)];
    let inputs: Vec<Input> =
        readers.iter().flat_map(|reader| [Read(*reader), ReadDone(*reader)]).chain([Update(U), UpdateDone]).collect();
    let mut visited = 0u32;
    explore(&Document::default(), &Bystander::default(), &inputs, 8, &mut visited);
    assert!(visited > 30_000, "{visited}");
}

/// What somebody who hears all inputs and outputs knows.
#[derive(Debug, Clone, Default)]
struct Bystander {
    asked: Vec<RequestId>,
    reading: Vec<RequestId>,
    update_asked: bool,
    updating: bool,
}

impl Bystander {
    /// Whether a program that keeps count can say this now.
    fn allows(&self, input: Input) -> bool {
        match input {
            Read(reader) => !self.asked.contains(&reader) && !self.reading.contains(&reader),
            ReadDone(reader) => self.reading.contains(&reader),
            Update(_) => !self.update_asked,
            UpdateDone => self.updating,
        }
    }

    fn hear(&mut self, input: Input, outputs: &[Output]) {
        match input {
            Read(reader) => self.asked.push(reader),
            ReadDone(reader) => self.reading.retain(|known| *known != reader),
            Update(_) => self.update_asked = true,
            UpdateDone => (self.update_asked, self.updating) = (false, false),
        }
        for output in outputs {
            match *output {
                ReadProceeds(reader) => {
                    let asked = self.asked.iter().position(|known| *known == reader).expect("it has asked, once");
                    self.asked.remove(asked);
                    self.reading.push(reader);
                }
                UpdateProceeds(_) => {
                    assert!(self.update_asked && !self.updating);
                    self.updating = true;
                }
            }
        }
        assert!(!self.updating || self.reading.is_empty(), "{self:?}");
        let stuck = !self.updating && self.reading.is_empty() && (self.update_asked || !self.asked.is_empty());
        assert!(!stuck, "nobody is at work, and somebody waits: {self:?}");
    }
}

fn explore(document: &Document, bystander: &Bystander, inputs: &[Input], depth: u32, visited: &mut u32) {
    *visited += 1;
    if depth == 0 {
        return;
    }
    for input in inputs {
        let mut next = document.clone();
        let outcome = next.step(*input);
        if !bystander.allows(*input) {
            // Who has lost count is told so, or asks for a second time, which the machine does not tell apart.
            assert!(outcome.is_err() || matches!(input, Read(_)), "{document:?} {input:?}");
            continue;
        }
        let mut heard = bystander.clone();
        heard.hear(*input, &outcome.expect("allowed"));
        explore(&next, &heard, inputs, depth - 1, visited);
    }
}
