/** The menu of the app's global shortcuts beside the composer. */

import { menuButton } from "../ui/menu.js";

/** `onShortcut(shortcut)` is called for the one that is chosen. */
export function shortcutMenu(store, onShortcut) {
  return menuButton({ label: "Shortcuts", name: "bolt", items: () => items(store, onShortcut) });
}

function items({ shortcuts, me }, onShortcut) {
  const offered = shortcuts
    .filter(({ type }) => type === "global")
    .map((shortcut) => ({
      label: shortcut.name,
      detail: me.is_external ? "Not for people of other organisations" : shortcut.description,
      disabled: me.is_external,
      click: () => onShortcut(shortcut),
    }));
  return offered.length ? offered : [{ label: "No app has a shortcut here", disabled: true }];
}
