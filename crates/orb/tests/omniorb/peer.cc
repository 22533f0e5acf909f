// A peer made with omniORB: an object of its own, and one that passes every call on to another broker.
//
//     peer [TARGET]
//
// A third object is somewhere else: with its own, or with the target. Prints the references of its own, of the one that passes calls
// on, if there is one, and of the third, one a line, and serves until it is told to leave.

#include <iostream>
#include <string>
#include <unistd.h>

#include "types.hh"

using namespace CORBA;

// Every operation on a type: result, in, inout and out, as the C++ mapping wants them.
#define PLAIN(OP)                     \
    OP(Short, a_short)                \
    OP(UShort, a_ushort)              \
    OP(Long, a_long)                  \
    OP(ULong, a_ulong)                \
    OP(LongLong, a_longlong)          \
    OP(ULongLong, a_ulonglong)        \
    OP(Float, a_float)                \
    OP(Double, a_double)              \
    OP(Boolean, a_boolean)            \
    OP(Char, a_char)                  \
    OP(WChar, a_wchar)                \
    OP(Octet, an_octet)               \
    OP(Types::Color, a_color)

#define FIXED_SIZE(OP)                \
    OP(Types::Small, a_small)         \
    OP(Types::Money, some_money)

#define VARIABLE(OP)                                  \
    OP(Types::Tree, Types::Tree_out, a_tree)          \
    OP(Types::Choice, Types::Choice_out, a_choice)    \
    OP(Types::Labels, Types::Labels_out, some_labels) \
    OP(Types::Octets, Types::Octets_out, some_octets) \
    OP(Types::Longs, Types::Longs_out, some_longs)    \
    OP(Types::Strings, Types::Strings_out, some_strings) \
    OP(Types::Smalls, Types::Smalls_out, some_smalls) \
    OP(Types::Bounded, Types::Bounded_out, some_bounded) \
    OP(Types::Unions, Types::Unions_out, some_unions) \
    OP(Types::OfWide, Types::OfWide_out, a_wide_choice) \
    OP(Any, Any_OUT_arg, an_any)                      \
    OP(Types::Anys, Types::Anys_out, some_anys)

class Own : public POA_Types::Peer {
    ORB_ptr orb;
    Long count = 0;
    std::string name = "omni", heard;

public:
    explicit Own(ORB_ptr orb) : orb(orb) {}

    Long calls() { return count; }
    char *label() { return string_dup(name.c_str()); }
    void label(const char *value) { name = value; }
    void ping() { ++count; }

#define OP(T, op) \
    T op(T i, T &io, T &o) { o = io; io = i; return i; }
    PLAIN(OP)
#undef OP
#define OP(T, op) \
    T op(const T &i, T &io, T &o) { o = io; io = i; return i; }
    FIXED_SIZE(OP)
#undef OP
#define OP(T, OUT, op) \
    T *op(const T &i, T &io, OUT o) { o = new T(io); io = i; return new T(i); }
    VARIABLE(OP)
#undef OP

    char *a_string(const char *i, char *&io, String_out o) {
        o = io;
        io = string_dup(i);
        return string_dup(i);
    }
    char *a_short_text(const char *i, char *&io, Types::ShortText_out o) {
        o = io;
        io = string_dup(i);
        return string_dup(i);
    }
    WChar *a_wstring(const WChar *i, WChar *&io, WString_out o) {
        o = io;
        io = wstring_dup(i);
        return wstring_dup(i);
    }
    WChar *a_short_wide(const WChar *i, WChar *&io, Types::ShortWide_out o) {
        o = io;
        io = wstring_dup(i);
        return wstring_dup(i);
    }
    Types::Grid_slice *a_grid(const Types::Grid i, Types::Grid io, Types::Grid o) {
        Types::Grid_copy(o, io);
        Types::Grid_copy(io, i);
        return Types::Grid_dup(i);
    }
    Object_ptr an_object(Object_ptr i, Object_ptr &io, Object_out o) {
        o = io;
        io = Object::_duplicate(i);
        return Object::_duplicate(i);
    }
    Types::Peer_ptr a_peer(Types::Peer_ptr i, Types::Peer_ptr &io, Types::Peer_out o) {
        o = io;
        io = Types::Peer::_duplicate(i);
        return Types::Peer::_duplicate(i);
    }
    TypeCode_ptr a_type(TypeCode_ptr i, TypeCode_ptr &io, TypeCode_OUT_arg o) {
        o = io;
        io = TypeCode::_duplicate(i);
        return TypeCode::_duplicate(i);
    }

    void fail(Long how) {
        if (how == 1) throw Types::Plain();
        if (how == 2) throw Types::Detailed("because", 42, Types::blue);
        if (how == 3) throw NO_PERMISSION(7, COMPLETED_YES);
    }
    void tell(const char *text) { heard = text; }
    char *told() { return string_dup(heard.c_str()); }
    Long relay(Types::Peer_ptr other, Long number) {
        Long io = 0, o;
        return other->a_long(number, io, o);
    }
    void sleep(ULong milliseconds) { usleep(milliseconds * 1000); }
    void leave() { orb->shutdown(false); }
};

class Proxy : public POA_Types::Peer {
    Types::Peer_var to;

public:
    explicit Proxy(Types::Peer_ptr to) : to(Types::Peer::_duplicate(to)) {}

    Long calls() { return to->calls(); }
    char *label() { return to->label(); }
    void label(const char *value) { to->label(value); }
    void ping() { to->ping(); }

#define OP(T, op) \
    T op(T i, T &io, T &o) { return to->op(i, io, o); }
    PLAIN(OP)
#undef OP
#define OP(T, op) \
    T op(const T &i, T &io, T &o) { return to->op(i, io, o); }
    FIXED_SIZE(OP)
#undef OP
#define OP(T, OUT, op) \
    T *op(const T &i, T &io, OUT o) { return to->op(i, io, o); }
    VARIABLE(OP)
#undef OP

    char *a_string(const char *i, char *&io, String_out o) { return to->a_string(i, io, o); }
    char *a_short_text(const char *i, char *&io, Types::ShortText_out o) { return to->a_short_text(i, io, o); }
    WChar *a_wstring(const WChar *i, WChar *&io, WString_out o) { return to->a_wstring(i, io, o); }
    WChar *a_short_wide(const WChar *i, WChar *&io, Types::ShortWide_out o) { return to->a_short_wide(i, io, o); }
    Types::Grid_slice *a_grid(const Types::Grid i, Types::Grid io, Types::Grid o) { return to->a_grid(i, io, o); }
    Object_ptr an_object(Object_ptr i, Object_ptr &io, Object_out o) { return to->an_object(i, io, o); }
    Types::Peer_ptr a_peer(Types::Peer_ptr i, Types::Peer_ptr &io, Types::Peer_out o) { return to->a_peer(i, io, o); }
    TypeCode_ptr a_type(TypeCode_ptr i, TypeCode_ptr &io, TypeCode_OUT_arg o) { return to->a_type(i, io, o); }

    void fail(Long how) { to->fail(how); }
    void tell(const char *text) { to->tell(text); }
    char *told() { return to->told(); }
    Long relay(Types::Peer_ptr other, Long number) { return to->relay(other, number); }
    void sleep(ULong milliseconds) { to->sleep(milliseconds); }
    void leave() {}
};

// Sends every call to another object.
class Elsewhere : public POA_PortableServer::ServantLocator {
    Object_var to;

public:
    explicit Elsewhere(Object_ptr to) : to(Object::_duplicate(to)) {}

    PortableServer::Servant preinvoke(const PortableServer::ObjectId &, PortableServer::POA_ptr, const char *,
                                      PortableServer::ServantLocator::Cookie &) {
        throw PortableServer::ForwardRequest(to);
    }
    void postinvoke(const PortableServer::ObjectId &, PortableServer::POA_ptr, const char *,
                    PortableServer::ServantLocator::Cookie, PortableServer::Servant) {}
};

int main(int argc, char **argv) {
    ORB_var orb = ORB_init(argc, argv);
    Object_var found = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(found);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    PortableServer::Servant_var<Own> own = new Own(orb);
    PortableServer::ObjectId_var id = poa->activate_object(own);
    Types::Peer_var peer = own->_this();
    String_var text = orb->object_to_string(peer);
    std::cout << text.in() << std::endl;
    Object_var elsewhere = Object::_duplicate(peer);
    if (argc > 1) {
        Object_var object = orb->string_to_object(argv[1]);
        elsewhere = Object::_duplicate(object);
        Types::Peer_var target = Types::Peer::_narrow(object);
        if (is_nil(target)) {
            std::cerr << "the target is not a Peer" << std::endl;
            return 1;
        }
        PortableServer::Servant_var<Proxy> proxy = new Proxy(target);
        id = poa->activate_object(proxy);
        peer = proxy->_this();
        text = orb->object_to_string(peer);
        std::cout << text.in() << std::endl;
    }
    PolicyList policies;
    policies.length(2);
    policies[0] = poa->create_servant_retention_policy(PortableServer::NON_RETAIN);
    policies[1] = poa->create_request_processing_policy(PortableServer::USE_SERVANT_MANAGER);
    PortableServer::POA_var other = poa->create_POA("elsewhere", manager, policies);
    PortableServer::ServantLocator_var locator = (new Elsewhere(elsewhere))->_this();
    other->set_servant_manager(locator);
    Object_var third = other->create_reference("IDL:sidestep.test/Types/Peer:1.0");
    text = orb->object_to_string(third);
    std::cout << text.in() << std::endl;
    manager->activate();
    orb->run();
    orb->destroy();
}
