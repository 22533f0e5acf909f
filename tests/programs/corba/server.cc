// The CORBA server: server FILE [ORB options]. Writes its reference to the file, and serves.
#include "echo.hh"
#include <cstdio>
#include <fstream>

class EchoServant : public POA_Echo {
public:
    void nothing() {}
    void take(const Octets &octets) {
        // Touched, as whoever wants the octets would.
        unsigned char sum = 0;
        for (CORBA::ULong at = 0; at < octets.length(); at++)
            sum += octets[at];
        touched = sum;
    }
    char *say(const char *words) { return CORBA::string_dup(words); }

private:
    volatile unsigned char touched = 0;
};

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc < 2)
            return 2;
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
        PortableServer::Servant_var<EchoServant> servant = new EchoServant;
        PortableServer::ObjectId_var id = poa->activate_object(servant);
        object = servant->_this();
        CORBA::String_var reference = orb->object_to_string(object);
        std::string temporary = std::string(argv[1]) + ".part";
        std::ofstream(temporary) << reference.in();
        if (std::rename(temporary.c_str(), argv[1]) != 0)
            return 1;
        PortableServer::POAManager_var manager = poa->the_POAManager();
        manager->activate();
        orb->run();
    } catch (const CORBA::Exception &exception) {
        std::fprintf(stderr, "%s\n", exception._name());
        return 1;
    }
    return 0;
}
