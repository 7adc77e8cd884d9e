/** Text areas that grow with their text, up to what the style sheet allows. */

export function fitHeight(input) {
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + input.offsetHeight - input.clientHeight}px`;
}
