"""What people and models say in the sessions: English from the project's own comments, Chinese, Japanese."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from benchmarks.corpus.chance import hexadecimal, pick, pick_early
from benchmarks.corpus.project import Project

Voice = Callable[[Random, Project, int], str]
"""Returns a text of about this many sentences."""

_ENGLISH = [
    "I'll look at {path} first, since `{name}` is defined there.",
    "The failing case goes through `{name}`, so let me check {file} and its callers.",
    "Can you find out why `{name}` returns nothing after the change in {file}?",
    "Now the tests pass, but {file} still uses `{name}` where `{other}` was meant.",
    "`{name}` and `{other}` do the same work twice; I'd keep the one in {path}.",
    "Please add a test for `{name}` and don't touch {file}.",
    "The error says that `{name}` has no attribute `{other}`.",
    "This is the same problem as in commit {hash}: the value is read before it is set.",
    "I renamed `{name}` to `{other}` in {path}; the imports are next.",
    "Let me run the tests of {file} again before I go on.",
    "That didn't work. Revert the last edit of {path} and try it with `{other}`.",
    "Why is the import of `{name}` needed in {file} at all?",
    "The cause is the order of the calls: `{other}` runs before `{name}` has finished.",
    "Done: {path} now handles an empty list, and `{name}` has a docstring.",
    "We need a smaller change here, only `{name}` in {file}.",
    "The log shows {count} requests within a second, so `{name}` must be called in a loop.",
]


def _words(text: str) -> list[list[str]]:
    """Split a text into paragraphs of words: nouns, modes, verbs and links."""
    return [paragraph.split() for paragraph in text.split("\n\n")]


_CHINESE = _words(
    """
    我们 这个 那个 用户 服务器 客户端 数据库 索引 缓存 测试 函数 变量 模块 接口 请求 响应 日志
    会话 线程 进程 队列 消息 配置 文件 目录 路径 编码 解码 字符 查询 结果 错误 异常 超时 连接
    事务 版本 分支 合并 提交 部署 环境 依赖 脚本 命令 参数 返回值 类型 字段 列表 字典 集合

    需要 可以 应该 已经 正在 无法 必须 尝试 开始 停止 继续 重新 首先 然后 最后 总是 可能 暂时
    直接 自动

    检查 修复 更新 删除 增加 读取 写入 调用 运行 编译 优化 重构 验证 比较 打开 关闭 移动 复制
    解析 生成 记录 搜索 排序 过滤 加载 保存 转换 分析 处理 发送 接收 等待 取消 恢复 迁移 压缩
    拆分 合成 替换 确认 统计 测量 导入 导出 注册 释放 锁定 同步 监控 调试

    因为 所以 但是 如果 否则 同时 另外 例如 不过 因此
    """
)
_JAPANESE = _words(
    """
    設定 画面 関数 変数 引数 戻り値 配列 辞書 文字列 ファイル フォルダ 検索 索引 結果 例外 履歴
    接続 通信 認証 権限 利用者 管理者 環境 依存 試験 性能 速度 記憶 領域 処理 命令 手順 構造
    形式 日付 時刻 言語 翻訳 画像 表示 入力 出力 保存先 変更点 差分 警告 不具合 原因 対策 仕様

    まず 次に 最後に 一度 必ず 少し 全部 同じ 新しい 古い 正しい 別の 実際に 自動で 直接 念のため

    確認します 修正します 追加します 削除します 更新します 実行します 読み込みます 書き込みます 調べます
    比べます 試します 直します 戻します 分けます まとめます 並べます 数えます 探します 変えます
    残します 待ちます 止めます 始めます 終わります 説明します 測定します

    しかし そのため つまり たとえば または もし ただし そして さらに なお
    """
)


def english(rng: Random, project: Project, sentences: int) -> str:
    """Speak English: about half authored sentences about the project's files, half its own comments."""
    return " ".join(_english_sentence(rng, project) for _ in range(sentences))


def _english_sentence(rng: Random, project: Project) -> str:
    if project.sentences and rng.random() < 0.5:
        return pick(rng, project.sentences)
    path = pick_early(rng, project.files).path
    return pick(rng, _ENGLISH).format(
        path=path,
        file=path.rpartition("/")[2],
        name=pick_early(rng, project.names),
        other=pick(rng, project.names),
        hash=hexadecimal(rng, 8),
        count=rng.randrange(2, 9000),
    )


def chinese(rng: Random, project: Project, sentences: int) -> str:
    """Speak Chinese, with the project's names in between."""
    nouns, modes, verbs, links = _CHINESE
    return "".join(
        f"{pick(rng, links)}{pick(rng, nouns)}{pick(rng, modes)}{pick(rng, verbs)}{pick(rng, nouns)}的"
        f"{pick(rng, nouns)}{_aside(rng, project)}，{pick(rng, modes)}{pick(rng, verbs)}{pick(rng, nouns)}。"
        for _ in range(sentences)
    )


def japanese(rng: Random, project: Project, sentences: int) -> str:
    """Speak Japanese, with the project's names in between."""
    nouns, modes, verbs, links = _JAPANESE
    return "".join(
        f"{pick(rng, links)}、{pick(rng, modes)}{pick(rng, nouns)}の{pick(rng, nouns)}{_aside(rng, project)}を"
        f"{pick(rng, verbs)}。"
        for _ in range(sentences)
    )


def _aside(rng: Random, project: Project) -> str:
    return f" {pick_early(rng, project.names)} " if rng.random() < 0.3 else ""


VOICES: Sequence[Voice] = (english, chinese, japanese)
