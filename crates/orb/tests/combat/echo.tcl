# The interface of `examples/echo/echo.idl`, in the words of Combat.
package require combat

combat::ir add \
{{module {IDL:Example:1.0 Example 1.0} {{exception\
{IDL:Example/Silence:1.0 Silence 1.0} {{why string}}} {interface\
{IDL:Example/Echo:1.0 Echo 1.0} {} {{operation\
{IDL:Example/Echo/say:1.0 say 1.0} string {{in text string}}\
{IDL:Example/Silence:1.0}} {attribute\
{IDL:Example/Echo/count:1.0 count 1.0} {unsigned long} readonly}}}}}}
