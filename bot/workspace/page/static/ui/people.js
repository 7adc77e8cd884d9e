/** How people are shown: avatars, names and badges. */

import { h } from "./dom.js";

const FALLBACK = ["#2f7f86", "#8a5aa8", "#b0582d", "#3c6fb4", "#7b7a22", "#a94468"];

/** Initials on the person's colour. Decoration only: the name is always beside it. */
export function avatar(person, size = "") {
  const node = h(
    "span",
    { class: `avatar ${size} ${person?.is_bot ? "avatar-app" : ""}`, "aria-hidden": "true" },
    initials(displayName(person)),
  );
  const color = colorOf(person);
  node.style.setProperty("--avatar", color);
  node.style.setProperty("--avatar-ink", isLight(color) ? "#16212b" : "#ffffff");
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

function colorOf(person) {
  const given = /^#?([0-9a-f]{6})$/i.exec(person?.color ?? "");
  if (given) return `#${given[1]}`;
  const sum = [...(person?.id ?? "?")].reduce((total, char) => total + char.codePointAt(0), 0);
  return FALLBACK[sum % FALLBACK.length];
}

function isLight(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  return r * 0.299 + g * 0.587 + b * 0.114 > 165;
}
