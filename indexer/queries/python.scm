; Python.  A capture's name says how CrystalPerf treats the node; parse.py nests captures by their ranges.
;   @type.<kind>  @function.<kind>  @decorated  @call  @error

; A decorated definition starts at its first decorator, as co_firstlineno does.
(decorated_definition) @decorated

(class_definition) @type.class
(function_definition) @function.method
(lambda) @function.lambda

(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))

(ERROR) @error
