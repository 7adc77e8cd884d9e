/** A file's size as people read it. */

const UNITS = ["bytes", "kB", "MB", "GB"];

export function sizeOf(bytes) {
  if (bytes === 1) return "1 byte";
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** power;
  return `${value >= 10 || power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}
