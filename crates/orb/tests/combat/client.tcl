# client.tcl REFERENCE: calls the object as the client of the example does, and prints the same.
source [file join [file dirname [info script]] echo.tcl]
set argv [eval corba::init $argv]
set echo [corba::string_to_object [lindex $argv 0]]
puts [$echo say "hello"]
puts [$echo say [string repeat "long " 20000]]
corba::try {
    $echo say ""
} catch {IDL:Example/Silence:1.0 silence} {
    array set parts [lindex $silence 1]
    puts "refused: $parts(why)"
}
puts "[$echo count] times"
corba::release $echo
