// The CORBA client: client FILE MILLISECONDS [SIZE] [ORB options]. Prints the median of a null call's round trip in
// nanoseconds, or sends octets one way for that time and prints how many messages of that size went in a second.
#include "echo.hh"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc < 3)
            return 2;
        std::string reference;
        std::ifstream(argv[1]) >> reference;
        CORBA::Object_var object = orb->string_to_object(reference.c_str());
        Echo_var echo = Echo::_narrow(object);
        for (std::size_t length = 1; length <= 65536; length *= 4) {
            std::string words(length, 'w');
            CORBA::String_var answer = echo->say(words.c_str());
            if (words != answer.in()) {
                std::fprintf(stderr, "a wrong answer of %zu bytes\n", length);
                return 1;
            }
        }
        using Clock = std::chrono::steady_clock;
        if (argc > 3) {
            Octets octets;
            octets.length(std::strtoul(argv[3], nullptr, 10));
            auto begin = Clock::now();
            long count = 0;
            while (Clock::now() < begin + std::chrono::milliseconds(std::atol(argv[2])))
                for (int number = 0; number < 8; number++, count++)
                    echo->take(octets);
            echo->nothing();
            std::chrono::duration<double> time = Clock::now() - begin;
            std::printf("messages_per_s %f\n", count / time.count());
            orb->destroy();
            return 0;
        }
        std::vector<long> trips;
        auto end = Clock::now() + std::chrono::milliseconds(std::atol(argv[2]));
        while (Clock::now() < end && trips.size() < 4000000) {
            auto before = Clock::now();
            echo->nothing();
            trips.push_back(std::chrono::nanoseconds(Clock::now() - before).count());
        }
        std::sort(trips.begin(), trips.end());
        std::printf("median_ns %ld calls %zu\n", trips[trips.size() / 2], trips.size());
        orb->destroy();
    } catch (const CORBA::Exception &exception) {
        std::fprintf(stderr, "%s\n", exception._name());
        return 1;
    }
    return 0;
}
