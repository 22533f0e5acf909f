//! Every link passes one suite: each bullet of each contract is one test.

use sidestep_testkit::conformance_suite;

conformance_suite!(shm, sidestep_testkit::conformance::fixture::shm);
conformance_suite!(iwarp, sidestep_testkit::conformance::fixture::iwarp);
conformance_suite!(iwarp_markers, sidestep_testkit::conformance::fixture::iwarp_markers);
conformance_suite!(iwarp_dense, sidestep_testkit::conformance::fixture::iwarp_dense);
conformance_suite!(iwarp_plain, sidestep_testkit::conformance::fixture::iwarp_plain);
conformance_suite!(traced_iwarp, sidestep_testkit::conformance::fixture::traced_iwarp);
conformance_suite!(faulty_iwarp, sidestep_testkit::conformance::fixture::faulty_iwarp);
conformance_suite!(sim_proxied, sidestep_testkit::conformance::fixture::sim_proxied);
conformance_suite!(sim_mapped, sidestep_testkit::conformance::fixture::sim_mapped);
conformance_suite!(traced_shm, sidestep_testkit::conformance::fixture::traced_shm);
conformance_suite!(traced_shm_seeing_all, sidestep_testkit::conformance::fixture::traced_shm_seeing_all);
conformance_suite!(traced_sim, sidestep_testkit::conformance::fixture::traced_sim);
conformance_suite!(faulty_shm, sidestep_testkit::conformance::fixture::faulty_shm);
conformance_suite!(faulty_shm_late, sidestep_testkit::conformance::fixture::faulty_shm_late);
conformance_suite!(faulty_sim, sidestep_testkit::conformance::fixture::faulty_sim);
// Nodes with two links pass on either while the other carries messages and stores at every turn.
conformance_suite!(shm_and_iwarp, sidestep_testkit::conformance::fixture::shm_and_iwarp);
conformance_suite!(iwarp_and_shm, sidestep_testkit::conformance::fixture::iwarp_and_shm);
conformance_suite!(two_sims, sidestep_testkit::conformance::fixture::two_sims);
