; C++.  A capture's name says how CrystalPerf treats the node; parse.py nests captures by their ranges.
;   @package  @type.<kind>  @function.<kind>  @decorated  @call  @comment  @error

(namespace_definition body: (declaration_list)) @package

; A template starts before the class or function it declares.
(template_declaration) @decorated

(class_specifier body: (field_declaration_list)) @type.class
(struct_specifier body: (field_declaration_list)) @type.class
(union_specifier body: (field_declaration_list)) @type.class

(function_definition) @function.method
(lambda_expression) @function.lambda

(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))

(comment) @comment

(ERROR) @error
