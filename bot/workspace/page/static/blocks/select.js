/** Elements that choose one of many, as the browser's own list. */

import { h } from "../ui/dom.js";
import { displayName } from "../ui/people.js";

/** The options are told apart by their place, since an app's values can be empty words to the browser. */
export function select(part, block, { view, form, act }, label) {
  const hint = part.placeholder?.text || "Choose…";
  const groups = groupsOf(part, view);
  const options = groups.flatMap((group) => group.options);
  const node = h(
    "select",
    {
      class: "menu-select",
      "aria-label": label["aria-labelledby"] ? null : hint,
      "data-action-id": part.action_id,
      "data-focus": `${block.block_id}/${part.action_id}`,
      ...label,
    },
    h("option", { value: "" }, hint),
    groups.map((group) => grouped(group, options)),
  );
  const show = () => (node.value = indexOf(form.value(block, part), options));
  node.addEventListener("change", async () => {
    const before = form.get(block, part);
    if (node.value === "" && block.type !== "input") return show(); // only an input can be emptied again
    form.set(block, part, node.value === "" ? null : options[node.value].chosen);
    if (await act(part, block, form.value(block, part))) return undefined;
    form.set(block, part, before);
    return show();
  });
  show();
  return node;
}

const bare = (chosen) => chosen.value ?? chosen;

function indexOf(value, options) {
  const found = options.findIndex(({ chosen }) => bare(chosen) === value);
  return found < 0 ? "" : String(found);
}

/** The options in their groups, a group without a label being the list itself: `{label, options: {label, chosen}[]}[]`. */
function groupsOf(part, view) {
  if (part.type === "users_select") return [{ options: peopleOptions(view) }];
  if (part.type !== "static_select") return [{ options: conversationOptions(part, view) }];
  const groups = part.option_groups ?? [{ options: part.options }];
  return groups.map((group) => ({ label: group.label?.text, options: staticOptions(group) }));
}

const staticOptions = ({ options }) => (options ?? []).map((option) => ({ label: option.text?.text, chosen: option }));

const peopleOptions = (view) => view.people.map((person) => ({ label: displayName(person), chosen: person.id }));

/** The conversations that the element's type and filter let through. */
function conversationOptions(part, view) {
  const { include, exclude_external_shared_channels: noShared, exclude_bot_users: noBots } = part.filter ?? {};
  return view.conversations
    .filter((channel) => part.type !== "channels_select" || kindOf(channel) === "public")
    .filter((channel) => !include || include.includes(kindOf(channel)))
    .filter((channel) => !(noShared && channel.is_ext_shared))
    .filter((channel) => !(noBots && channel.is_im && view.person(channel.user)?.is_bot))
    .map((channel) => ({ label: channel.is_im ? view.title(channel) : `#${channel.name}`, chosen: channel.id }));
}

function kindOf(channel) {
  if (channel.is_im) return "im";
  return channel.is_private ? "private" : "public";
}

function grouped({ label, options }, all) {
  const nodes = options.map((option) => h("option", { value: all.indexOf(option) }, option.label));
  return label ? h("optgroup", { label }, nodes) : nodes;
}
