# server.tcl: an object as that of the example; prints its reference, and serves.
source [file join [file dirname [info script]] echo.tcl]

itcl::class Echo {
    inherit PortableServer::ServantBase
    public variable count 0
    public method _Interface {} {
        return "::Example::Echo"
    }
    public method say {text} {
        if {$text == ""} {
            corba::throw [list IDL:Example/Silence:1.0 [list why "nothing was said"]]
        }
        incr count
        return $text
    }
}

eval corba::init $argv
set poa [corba::resolve_initial_references RootPOA]
set echo [Echo #auto]
set id [$poa activate_object $echo]
puts [corba::object_to_string [$poa id_to_reference $id]]
flush stdout
[$poa the_POAManager] activate
vwait forever
