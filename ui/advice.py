"""What went wrong and what to do, by the API's code, for readers of Chinese: the API itself speaks
English."""

from __future__ import annotations

from ui.strings import Lang

ADVICE_ZH: dict[str, str] = {
    "empty_file": "文件是空的，请检查后重新上传。",
    "no_text": "文件中没有可读文字。",
    "no_text_layer": "该 PDF 只有图像、没有文字层。请先进行文字识别（OCR），再上传。",
    "encrypted": "文件已加密。请去除密码后重新上传。",
    "damaged": "文件已损坏，无法打开。请重新导出后上传。",
    "unsupported_type": (
        "不支持这种文件类型。请上传 PDF、DOCX、XLSX、HTML、电子邮件（EML）、Markdown 或文本。"
    ),
    "type_mismatch": "文件内容与扩展名不符。请用正确的扩展名重新保存。",
    "too_large": "文件内容超出限制。请拆分后上传。",
    "upload_too_large": "文件超出上传大小限制。请拆分或压缩后上传。",
    "undecodable": "无法识别文字编码。请另存为 UTF-8 后上传。",
    "cancelled": "已取消。",
    "missing_api_key": "此服务器需要 API 密钥，请刷新页面后登录。",
    "invalid_api_key": "密钥无效、已过期或已被撤销。请刷新页面，用新的密钥登录。",
    "forbidden": "此密钥无权执行该操作。",
    "parse_timeout": "解析超时。请拆分文件后重试。",
    "bad_question": "问题为空或过长，请修改后再问。",
    "bad_name": "文件名无效，请改名后上传。",
    "not_found": "找不到该内容，可能已被删除。",
    "not_ready": "文件尚未就绪，请稍后再问。",
    "too_many_questions": "排队的问题过多，请稍后再问。",
    "too_many_bytes": "同时处理的请求过大过多，请稍后再试。",
    "body_timeout": "内容未能及时传完，请重新发送。",
    "engine_busy": "模型正忙，请稍后再问。",
    "engine_closed": "模型已停止，请重新启动服务。",
    "engine_error": "模型出错，详情见服务器日志。",
    "request_too_large": "问题连同证据超出模型的长度限制，请缩短问题。",
    "storage_full": "磁盘空间不足。请清理后重试。",
    "database_busy": "数据库正忙，请稍后重试。",
    "model_unavailable": "模型不可用，请先运行 fineprint models pull。",
    "server_stopping": "服务器正在停止，请在恢复后再问。",
    "interrupted": "读取被中断，请点击重试。",
    "timeout": "在允许的时间内没有得到答案，请稍后再问。",
    "internal_error": "服务器出现故障，详情见日志。",
    "never_answered": "问题已保存，但没有开始作答，请重新提问。",
    "not_saved": "此回答暂未保存，数据库恢复后会自动保存。",
    "phrasing_failed": "模型未能给出自己的表述；引文不受影响。",
    "no_wording": "等待的提问较多，模型未作表述，或表述未写完。稍后再问即可得到完整的表述。",
    "long_question": "问题太长，模型未作表述，只给出引文。请把问题写短后再问。",
    "many_parts": "一次问的事项太多，未能逐项查找，部分事项可能没有引文。请分开提问。",
    "not_waited": "等待读完的提问过多，本回答未等到文件读完。请在读完后再问一次。",
    "document_deleted": "等待期间文件已被删除，本回答未经证实。请重新上传后再问。",
    "comments": "文件含有批注，批注未读入。",
    "hidden_text": "文件含有隐藏文字，隐藏文字未读入。",
    "approximate_pages": "页码只按手工分页符计算。需要准确页码时，请另存为 PDF 后上传。",
    "tracked_changes": "文件含有修订记录，已按全部接受修订读入。",
    "attachments": "附件未读入，请另存后单独上传。",
    "formulas_without_values": "文件中有公式没有计算结果。请用 Excel 打开、保存后重新上传。",
    "figures_missing": "文件中有数字不在已读入的文本中，请对照原件核对。",
    "pages_without_text": "有的页面只有图像，没有可读的文字，回答不涉及这些页面。",
    "unreadable_pages": "有的页面文字无法解码，未读入，回答不涉及这些页面。",
    "partly_unreadable_pages": "有的页面部分字符无法解码，显示为“�”。",
    "recognised_pages": "有的页面文字由图像识别（OCR）得到，可能有误，请对照原件核对数字。",
    "recognition_failed": "有的页面文字识别（OCR）失败，回答不涉及这些页面。",
    "recognition_limit": "图像页面过多，部分页面未做文字识别（OCR）。请拆分文件。",
    "read_on_demand": "文件未预先读取，每次回答会更久。",
    "different_languages": "两个版本的语言不同，无法完整比较。",
    "little_in_common": "两个文本的共同用词很少，可能不是同一合同的两个版本。",
    "same_document": "所选的两个版本是同一份文件，没有差异。",
    "model_servers_down": "写作模型的服务器没有响应，请稍后再试。",
}

WITH_DETAIL = frozenset({
    "attachments", "figures_missing", "formulas_without_values", "pages_without_text",
    "unreadable_pages", "partly_unreadable_pages", "recognised_pages", "recognition_failed",
    "recognition_limit", "hidden_text", "read_on_demand", "different_languages",
})  # fmt: skip
"""Codes of which the API's words name pages, figures or files, which nobody must miss."""


def advice(lang: Lang, code: str, detail: str) -> str:
    """The words for the API's `code` and its English `detail`."""
    if lang != "zh" or code not in ADVICE_ZH:
        return detail
    return f"{ADVICE_ZH[code]}（{detail}）" if code in WITH_DETAIL and detail else ADVICE_ZH[code]
