/** What was typed and chosen in the blocks of a modal, of Home or of a message. Pure. */

/** By element: the field of Slack's `state.values` that holds its value, the one that the app sets it with, and "nothing". */
const FIELDS = {
  plain_text_input: ["value", "initial_value", null],
  number_input: ["value", "initial_value", null],
  static_select: ["selected_option", "initial_option", null],
  radio_buttons: ["selected_option", "initial_option", null],
  checkboxes: ["selected_options", "initial_options", []],
  multi_static_select: ["selected_options", "initial_options", []],
  conversations_select: ["selected_conversation", "initial_conversation", null],
};

const keyOf = (block, element) => `${block.block_id} ${element.action_id}`;
const bare = (value) => value?.value ?? value;

export class Form {
  #kept = new Map(); // what was entered on this page
  #held = {}; // what the server holds
  #conversation;

  /** `conversation`: the id of the one that is open, for an element that starts with it. */
  constructor({ conversation = null } = {}) {
    this.#conversation = conversation;
  }

  /** Takes up what the server holds; what was entered here goes before it. */
  hold(values) {
    this.#held = values ?? {};
  }

  /** What stands in an element; where the app exchanged it for one of the same ids and kind, what was there stays. */
  get(block, element) {
    const kept = this.#kept.get(keyOf(block, element));
    if (kept?.type === element.type) return kept.value;
    const [field, initial, nothing] = FIELDS[element.type];
    const held = this.#held[block.block_id]?.[element.action_id];
    const current = element.default_to_current_conversation ? this.#conversation : null;
    return (held?.type === element.type ? held[field] : element[initial]) ?? current ?? nothing;
  }

  set(block, element, value) {
    this.#kept.set(keyOf(block, element), { type: element.type, value });
  }

  /** What stands in an element, in the server's words: text, an option's value, an id, or a list of those. */
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

  /** @returns {Object<string, string>} by `block_id` what is missing or does not fit, as Slack says it before it asks the app */
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

/** The elements of a block that keep what is entered. */
function holders(block) {
  const elements = Array.isArray(block.elements) ? block.elements : [];
  return [block.element, block.accessory, ...elements].filter((element) => Object.hasOwn(FIELDS, element?.type));
}

/** Slack counts characters, not the halves that JavaScript counts. */
export const lengthOf = (text) => [...(text ?? "")].length;

function problemOf(element, optional, value) {
  if (value === null || value.length === 0) return optional ? "" : "Please complete this required field.";
  if (element.type === "number_input") return isNumber(value, element) ? "" : "Please enter a number.";
  if (element.type !== "plain_text_input") return "";
  const surplus = lengthOf(value) - (element.max_length ?? Infinity);
  return surplus > 0 ? `This is ${surplus} ${surplus === 1 ? "character" : "characters"} too long.` : "";
}

const isNumber = (value, { is_decimal_allowed: decimal }) => (decimal ? /^-?\d+(\.\d+)?$/ : /^-?\d+$/).test(value);
