/** How people are shown: avatars, names and badges. */

import { h } from "./dom.js";

/** Initials on the person's colour. Decoration only: the name is always beside it. */
export function avatar(person, size = "") {
  const node = h(
    "span",
    { class: `avatar ${size}`, "aria-hidden": "true" },
    initials(displayName(person)),
  );
  if (person?.color) node.style.setProperty("--avatar", `#${person.color}`);
  return node;
}

export function displayName(person) {
  return person?.real_name || person?.name || "Unknown person";
}

export function badges(person) {
  return [
    person?.is_bot && h("span", { class: "badge" }, "APP"),
    (person?.is_external || person?.is_guest) && outsideBadge(standing(person)),
  ];
}

function outsideBadge({ label, note }) {
  return h("span", { class: "badge badge-outside", title: note }, label);
}

/** What distinguishes a person from other members: `{label, note}`, or null. */
export function standing({ is_admin: admin, is_guest: guest, is_external: external }) {
  if (external) return { label: "External", note: "Of another organisation: commands and shortcuts are not for them" };
  if (guest) return { label: "Guest", note: "Sees only the channels they were invited to" };
  return admin ? { label: "Admin", note: "Administers this workspace" } : null;
}

function initials(name) {
  const words = name.split(/[\s._-]+/).filter(Boolean);
  return words
    .slice(0, 2)
    .map((word) => [...word][0].toUpperCase())
    .join("");
}
