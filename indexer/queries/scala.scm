; Scala 2 and 3.  A capture's name says how CrystalPerf treats the node; parse.py nests captures by their ranges.
;   @package  @package_object  @type.<kind>  @function.<kind>  @call  @comment  @error

(package_clause) @package
(package_object) @package_object

(class_definition) @type.class
(object_definition) @type.object
(trait_definition) @type.trait
(enum_definition) @type.enum
(full_enum_case) @type.class
(instance_expression (template_body)) @type.anonymous

; `given x: T with { … }` is an object, `given x: T = …` is computed on first use, as a lazy val is.
(given_definition body: (with_template_body)) @type.object
(given_definition body: (expression)) @function.method

(function_definition) @function.method
(function_declaration) @function.abstract
(val_definition (modifiers "lazy")) @function.lazy
(lambda_expression) @function.lambda

; `{ case … }` is a function wherever it is not the body of match or catch.
(case_block) @function.lambda
(match_expression body: (case_block) @not_function)
(catch_clause (case_block) @not_function)

(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (identifier) @call))
(generic_function function: (identifier) @call)
(generic_function function: (field_expression field: (identifier) @call))
(infix_expression operator: (identifier) @call)
(instance_expression . (type_identifier) @call)
(instance_expression . (generic_type . (type_identifier) @call))

(block_comment) @comment
(comment) @comment

(ERROR) @error
