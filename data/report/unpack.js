// SPDX-License-Identifier: Apache-2.0
// Unpacks the data in elements of the page.
"use strict";

// An element of the page holds deflated bytes as base64.
async function unpack(id) {
  const holder = document.getElementById(id);
  const text = holder.textContent;
  holder.remove();
  const bytes = new Uint8Array(Math.floor((text.length / 4) * 3));
  const piece = 1 << 20;
  let size = 0;
  for (let at = 0; at < text.length; at += piece) {
    const binary = atob(text.slice(at, at + piece));
    for (let i = 0; i < binary.length; ++i) bytes[size++] = binary.charCodeAt(i);
  }
  const stream = new Blob([bytes.subarray(0, size)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

async function unpackJson(id) {
  return JSON.parse(new TextDecoder().decode(await unpack(id)));
}
