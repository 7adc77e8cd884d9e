/** The values in the inputs of a modal, Home or a message. Pure. */

/** By element: the field for its value in Slack's `state.values`, and the empty value. */
const FIELDS = {
  plain_text_input: ["value", null],
  number_input: ["value", null],
  static_select: ["selected_option", null],
  radio_buttons: ["selected_option", null],
  checkboxes: ["selected_options", []],
  multi_static_select: ["selected_options", []],
  conversations_select: ["selected_conversation", null],
};

const keyOf = (block, element) => `${block.block_id} ${element.action_id}`;
const bare = (value) => value?.value ?? value;

export class Form {
  #entered = new Map(); // on this page
  #fromServer = {};
  #conversation;

  /** `conversation`: the id of the open one, for elements that start with it. */
  constructor({ conversation = null } = {}) {
    this.#conversation = conversation;
  }

  /** Sets the server's values. What was entered on this page takes precedence. */
  hold(values) {
    this.#fromServer = values ?? {};
  }

  /** The value of an element. It survives if the app replaces the element by one of the same ids and type. */
  get(block, element) {
    const entered = this.#entered.get(keyOf(block, element));
    if (entered?.type === element.type) return entered.value;
    const [field, nothing] = FIELDS[element.type];
    const held = this.#fromServer[block.block_id]?.[element.action_id];
    const current = element.default_to_current_conversation ? this.#conversation : null;
    return held?.[field] ?? current ?? nothing;
  }

  set(block, element, value) {
    this.#entered.set(keyOf(block, element), { type: element.type, value });
  }

  /** The value of an element in the server's form: text, an option's value, an id, or a list of those. */
  value(block, element) {
    const value = this.get(block, element);
    return Array.isArray(value) ? value.map(bare) : bare(value);
  }

  /** @returns {Object<string, Object<string, string | string[] | null>>} by `block_id` and `action_id` */
  values(blocks) {
    const values = {};
    for (const block of blocks) {
      for (const element of holders(block)) {
        (values[block.block_id] ??= {})[element.action_id] = this.value(block, element);
      }
    }
    return values;
  }

  /** @returns {Object<string, string>} by `block_id`, the errors that Slack finds before it asks the app */
  problems(blocks) {
    const problems = {};
    for (const block of blocks) {
      const [element] = block.type === "input" ? holders(block) : [];
      const problem = element && problemOf(element, block.optional, this.value(block, element));
      if (problem) problems[block.block_id] = problem;
    }
    return problems;
  }
}

/** The elements of a block that have values. */
function holders(block) {
  const elements = Array.isArray(block.elements) ? block.elements : [];
  return [block.element, block.accessory, ...elements].filter((element) => Object.hasOwn(FIELDS, element?.type));
}

/** Slack counts characters; JavaScript counts UTF-16 code units. */
export const lengthOf = (text) => [...(text ?? "")].length;

function problemOf(element, optional, value) {
  if (value === null || value.length === 0) return optional ? "" : "Please complete this required field.";
  if (element.type === "number_input") return isNumber(value, element) ? "" : "Please enter a number.";
  if (element.type !== "plain_text_input") return "";
  const surplus = lengthOf(value) - (element.max_length ?? Infinity);
  return surplus > 0 ? `This is ${surplus} ${surplus === 1 ? "character" : "characters"} too long.` : "";
}

const isNumber = (value, { is_decimal_allowed: decimal }) => (decimal ? /^-?\d+(\.\d+)?$/ : /^-?\d+$/).test(value);
