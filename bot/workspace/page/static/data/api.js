/** The page's calls. Each answers `{ok: true, ...}` or `{ok: false, error}` with words for a person; none of them throws. */

const UNREACHABLE = "The workspace server cannot be reached. Check that it is still running, then try again.";

export async function fetchSnapshot(as) {
  const query = as ? `?${new URLSearchParams({ as })}` : "";
  const response = await fetch(`/page/snapshot${query}`, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new SnapshotError(response.status);
  return response.json();
}

export class SnapshotError extends Error {
  constructor(status) {
    super(`snapshot answered ${status}`);
    this.status = status;
  }
}

async function post(path, body) {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => null);
    if (answer && typeof answer.ok === "boolean") return answer;
    return { ok: false, error: `The workspace server answered ${response.status}. Try again, or look at its log.` };
  } catch {
    return { ok: false, error: UNREACHABLE };
  }
}

export const send = (body) => post("/page/send", body);
export const press = (body) => post("/page/press", body);
export const edit = (body) => post("/page/edit", body);
export const remove = (body) => post("/page/delete", body);
export const react = (body) => post("/page/react", body);
export const join = (body) => post("/page/join", body);
