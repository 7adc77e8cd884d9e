/** Where this person finds a file. */
export function fileAddress(id, view) {
  return `/page/files/${encodeURIComponent(id)}?${new URLSearchParams({ as: view.me.id })}`;
}
