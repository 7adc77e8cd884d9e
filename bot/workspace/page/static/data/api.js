/** Calls to the server. Each returns `{ok: true, ...}` or `{ok: false, error}` with a message; only fetchSnapshot() throws. */

const UNREACHABLE = "The workspace server cannot be reached. Check that it is still running, then try again.";

export async function fetchSnapshot(as) {
  const query = as ? `?${new URLSearchParams({ as })}` : "";
  const response = await fetch(`/page/snapshot${query}`, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new SnapshotError(response.status);
  return response.json();
}

class SnapshotError extends Error {
  constructor(status) {
    super(`snapshot answered ${status}`);
    this.status = status;
  }
}

/** Runs the operation of that name. */
export const post = (name, body) => call(`/page/${name}`, "application/json", JSON.stringify(body));

async function call(path, type, body) {
  try {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": type }, body });
    const answer = await response.json().catch(() => null);
    if (answer && typeof answer.ok === "boolean") return answer;
    return { ok: false, error: `The workspace server answered ${response.status}. Try again, or look at its log.` };
  } catch {
    return { ok: false, error: UNREACHABLE };
  }
}

/** Uploads the files, then sends the message. */
export async function send({ files = [], ...body }) {
  const uploads = [];
  for (const file of files) {
    const answer = await upload(body.as, file);
    if (!answer.ok) return answer;
    uploads.push(answer.upload);
  }
  return post("send", { ...body, uploads });
}

function upload(as, file) {
  const query = new URLSearchParams({ as, name: file.name, type: file.type });
  return call(`/page/upload?${query}`, "application/octet-stream", file);
}
