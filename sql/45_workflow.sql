-- Workflows: named, versioned, immutable definitions.

CREATE FUNCTION stepwise.define_workflow(definition jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_define_workflow';
COMMENT ON FUNCTION stepwise.define_workflow(jsonb) IS 'store a workflow; a changed definition becomes its next version';

CREATE FUNCTION stepwise.validate_definition(definition jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_validate_definition';
COMMENT ON FUNCTION stepwise.validate_definition(jsonb) IS 'list all faults of a definition without storing it';

CREATE FUNCTION stepwise.list_workflows(after text = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_workflows';
COMMENT ON FUNCTION stepwise.list_workflows(text, int) IS 'list the workflows with their newest versions by name, page by page';

CREATE FUNCTION stepwise.get_workflow(name text, version int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_workflow';
COMMENT ON FUNCTION stepwise.get_workflow(text, int) IS 'show a version of a workflow; the default is the newest';

CREATE FUNCTION stepwise.drop_workflow(name text, version int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_drop_workflow';
COMMENT ON FUNCTION stepwise.drop_workflow(text, int) IS 'drop a version of a workflow, or all versions, unless it is in use';
