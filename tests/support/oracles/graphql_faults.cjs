// Prints what is wrong with GraphQL queries and their answers, by GitHub's own schema. Takes the schema's path, and
// `[{query, variables, data}]`.
const { readFileSync } = require("node:fs");
const { isDeepStrictEqual } = require("node:util");
const { buildSchema, executeSync, parse, validate } = require("graphql");

const schema = buildSchema(readFileSync(process.argv[2], "utf8"), { assumeValidSDL: true });
const plain = (value) => JSON.parse(JSON.stringify(value));
const faults = JSON.parse(readFileSync(0, "utf8")).flatMap(({ query, variables, data }) => {
  const document = parse(query);
  const invalid = validate(schema, document);
  if (invalid.length) return invalid.map(String);
  const told = executeSync({ schema, document, rootValue: data, variableValues: variables });
  if (told.errors) return told.errors.map(String);
  return isDeepStrictEqual(plain(told.data), plain(data)) ? [] : [`not asked for: ${JSON.stringify(data)}`];
});
console.log(JSON.stringify(faults));
