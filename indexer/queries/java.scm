; Java.  A capture's name says how CrystalPerf treats the node; parse.py nests captures by their ranges.
;   @package  @type.<kind>  @function.<kind>  @call  @comment  @error

(package_declaration) @package

(class_declaration) @type.class
(record_declaration) @type.enum
(enum_declaration) @type.enum
(interface_declaration) @type.interface
(annotation_type_declaration) @type.interface
(object_creation_expression (class_body)) @type.anonymous
(enum_constant body: (class_body)) @type.anonymous

(method_declaration) @function.method
(constructor_declaration) @function.constructor
(compact_constructor_declaration) @function.constructor
(static_initializer) @function.static
(lambda_expression) @function.lambda

(method_invocation name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type . (type_identifier) @call))
(method_reference (identifier) @call .)

(block_comment) @comment
(line_comment) @comment

(ERROR) @error
